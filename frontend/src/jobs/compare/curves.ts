/** Curves of several runs on one axis, and the mean of runs that differ only in the seed. */
import type { Curve } from '@/charts/curve'
import type { XAxis } from '@/charts/lines'

import { type Clock, columnClock, wallClock } from '../shared/stepClock'
import type { Job, StepClock } from '../types'

/** The value between the points of a curve; its ends go on beyond it. */
export function valueAt(curve: Curve, step: number): number {
  const { steps, values } = curve
  let low = 0
  let high = steps.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((steps[middle] ?? Infinity) < step) low = middle + 1
    else high = middle
  }
  if (steps[low] === step || low === 0) return values[low] ?? NaN
  if (low === steps.length) return values[low - 1] ?? NaN
  const [before, after] = [steps[low - 1] ?? 0, steps[low] ?? 0]
  const [a, b] = [values[low - 1] ?? NaN, values[low] ?? NaN]
  return a + ((b - a) * (step - before)) / (after - before)
}

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

export interface MeanCurve {
  curve: Curve
  /** One standard deviation below and above. */
  low: number[]
  high: number[]
}

/** Mean of several runs at every step that any of them reports, as far as all have come; null without a common stretch. */
export function meanOf(curves: readonly Curve[]): MeanCurve | null {
  const finite = curves.map((curve) => {
    const kept = curve.values.flatMap((value, index) => (Number.isFinite(value) ? [index] : []))
    return {
      steps: kept.map((index) => curve.steps[index] ?? 0),
      values: kept.map((index) => curve.values[index] ?? NaN),
    }
  })
  if (finite.length < 2 || finite.some((curve) => curve.steps.length === 0)) return null
  const from = Math.max(...finite.map((curve) => curve.steps[0] ?? 0))
  const to = Math.min(...finite.map((curve) => curve.steps.at(-1) ?? 0))
  const steps = [...new Set(finite.flatMap((curve) => curve.steps))]
    .filter((step) => step >= from && step <= to)
    .sort((a, b) => a - b)
  if (steps.length === 0) return null
  const rows = steps.map((step) => meanAndDeviation(finite.map((curve) => valueAt(curve, step))))
  return {
    curve: { steps, values: rows.map(({ mean }) => mean) },
    low: rows.map(({ mean, deviation }) => mean - deviation),
    high: rows.map(({ mean, deviation }) => mean + deviation),
  }
}

/** With the sample's deviation, 0 for a single value. */
export function meanAndDeviation(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  if (values.length < 2) return { mean, deviation: 0 }
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, deviation: Math.sqrt(squares / (values.length - 1)) }
}
