/** Curves of several runs on one axis, and the mean of runs that differ only in the seed. */
import type { Curve } from '@/charts/curve'
import type { XAxis } from '@/charts/lines'

import { type Clock, columnClock, wallClock } from '../shared/stepClock'
import type { Job, StepClock } from '../types'

/** Places the steps of a run on an axis: null for steps themselves, undefined where the run did not report what it takes. */
export function clockOf(
  job: Pick<Job, 'started_at' | 'finished_at'>,
  clock: StepClock | null,
  axis: XAxis,
  now: number,
): Clock | null | undefined {
  if (axis === 'step') return null
  if (clock === null) return undefined
  if (axis === 'wall') return wallClock(clock, job, now) ?? undefined
  return columnClock(clock.steps, axis === 'time' ? clock.elapsed_s : clock.tokens) ?? undefined
}

/** Mean of several runs, with one standard deviation at every step. */
export interface MeanCurve {
  curve: Curve
  deviations: readonly number[]
}

/** Of complete curves: the mean at every step at which all were measured; null without one. */
export function meanOf(curves: readonly Curve[]): MeanCurve | null {
  const values = curves.map(
    (curve) => new Map(curve.steps.map((step, index) => [step, curve.values[index] ?? NaN] as const)),
  )
  const steps = (curves[0]?.steps ?? []).filter((step) => values.every((own) => Number.isFinite(own.get(step))))
  if (curves.length < 2 || steps.length === 0) return null
  const rows = steps.map((step) => meanAndDeviation(values.map((own) => own.get(step) ?? NaN)))
  return { curve: { steps, values: rows.map(({ mean }) => mean) }, deviations: rows.map(({ deviation }) => deviation) }
}

/** With the sample's deviation, 0 for a single value. */
export function meanAndDeviation(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  if (values.length < 2) return { mean, deviation: 0 }
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, deviation: Math.sqrt(squares / (values.length - 1)) }
}
