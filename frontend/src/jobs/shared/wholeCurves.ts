/** All points of metrics, where a chart has them thinned out: for files, not for drawing. */
import { api, unwrap } from '@/api/client'
import { type Curve, emptyCurve } from '@/charts/curve'

import { toCurve } from '../live/curveBook'

/** As many as an answer may hold; a longer curve is read in parts. */
const MOST_POINTS = 20_000

type Curves = Map<string, Curve>

/** The curves of a job by metric; those that it does not have are missing. */
export async function readWholeCurves(jobId: string, keys: readonly string[]): Promise<Curves> {
  return keys.length === 0 ? new Map() : readBetween(jobId, keys, undefined, undefined)
}

/** The curves of several jobs, one job after the other. */
export async function readWholeCurvesOf(
  jobIds: readonly string[],
  keys: readonly string[],
): Promise<Map<string, Curves>> {
  const found = new Map<string, Curves>()
  for (const id of jobIds) found.set(id, await readWholeCurves(id, keys))
  return found
}

async function readBetween(
  jobId: string,
  keys: readonly string[],
  first: number | undefined,
  last: number | undefined,
): Promise<Curves> {
  const query = { keys: [...keys], max_points: MOST_POINTS, from_step: first, to_step: last }
  const { series } = await unwrap(
    api.GET('/api/v1/jobs/{job_id}/metrics', { params: { path: { job_id: jobId }, query } }),
  )
  const found: Curves = new Map()
  for (const one of series) {
    const middle = one.is_downsampled ? one.steps[one.steps.length >> 1] : undefined
    found.set(one.key, middle === undefined ? toCurve(one) : await readHalves(jobId, one.key, first, middle, last))
  }
  return found
}

async function readHalves(
  jobId: string,
  key: string,
  first: number | undefined,
  middle: number,
  last: number | undefined,
): Promise<Curve> {
  const before = (await readBetween(jobId, [key], first, middle - 1)).get(key) ?? emptyCurve()
  const after = (await readBetween(jobId, [key], middle, last)).get(key) ?? emptyCurve()
  return { steps: [...before.steps, ...after.steps], values: [...before.values, ...after.values] }
}
