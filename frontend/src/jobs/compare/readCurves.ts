/** Curves of compared runs, as many points as a chart can show. */
import { api, unwrap } from '@/api/client'
import type { Curve } from '@/charts/curve'
import { type Stretch, withDetail } from '@/charts/detail'

import { toCurve } from '../live/curveBook'
import type { StepClock } from '../types'

export const MAX_POINTS = 400

/** What was read of a run: its curves by metric, and what places their steps on other axes. */
export interface RunCurves {
  curves: ReadonlyMap<string, Curve>
  clock: StepClock | null
}

export async function readCurves(
  ids: readonly string[],
  keys: readonly string[],
  { stretch = null, signal }: { stretch?: Stretch | null; signal: AbortSignal },
): Promise<Map<string, RunCurves>> {
  const query = {
    ids: [ids.join(',')],
    keys: [...keys],
    max_points: MAX_POINTS,
    from_step: stretch?.from,
    to_step: stretch?.to,
    // Of a part, the clock of the whole is there already.
    clock: stretch === null,
  }
  const answer = await unwrap(api.GET('/api/v1/jobs/compare/metrics', { params: { query }, signal }))
  return new Map(
    answer.runs.map((run): [string, RunCurves] => [
      run.job_id,
      { curves: new Map(run.series.map((series) => [series.key, toCurve(series)])), clock: run.clock ?? null },
    ]),
  )
}

export type Curves = ReadonlyMap<string, ReadonlyMap<string, Curve>>

/** The curves of all runs with a stretch of them in detail. */
export function detailCurves(whole: Curves, part: ReadonlyMap<string, RunCurves>, stretch: Stretch): Curves {
  return new Map(
    [...whole].map(([id, own]) => [
      id,
      new Map([...own].map(([key, curve]) => [key, withDetail(curve, part.get(id)?.curves.get(key), stretch)])),
    ]),
  )
}
