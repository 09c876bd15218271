/** Steps on axes of time and tokens, by what the server summed up over all of them. */
import { lowerBound } from '@/charts/curve'

import type { Job, StepClock } from '../types'

export type Clock = (step: number) => number

/**
 * Places steps by a column that grows with them; null where it has no value.
 *
 * Between two known steps the places are in proportion. Beyond the ends, where only some of the metrics were reported,
 * they go on at the pace of the whole, down to `least`.
 */
export function columnClock(
  steps: readonly number[],
  column: readonly (number | null)[] | null,
  least = 0,
): Clock | null {
  const known = steps.flatMap((step, index): [number, number][] => {
    const value = column?.[index] ?? null
    return value === null ? [] : [[step, value]]
  })
  const [first, last] = [known[0], known.at(-1)]
  if (first === undefined || last === undefined) return null
  const places = known.map(([step]) => step)
  const pace = last[0] > first[0] ? (last[1] - first[1]) / (last[0] - first[0]) : 0
  return (step) => {
    const index = lowerBound(places, step)
    const after = known[index]
    if (after === undefined) return last[1] + (step - last[0]) * pace
    if (after[0] === step) return after[1]
    const before = known[index - 1]
    if (before === undefined) return Math.max(least, first[1] - (first[0] - step) * pace)
    return before[1] + ((after[1] - before[1]) * (step - before[0])) / (after[0] - before[0])
  }
}

/**
 * The time of day at which steps ended, in milliseconds; null without a clock.
 *
 * A run from before these times were kept has its training counted back from its end; of one that was going on then,
 * the first steps from the first one whose time is known.
 */
export function wallClock(clock: StepClock, job: Pick<Job, 'started_at' | 'finished_at'>, now: number): Clock | null {
  const seconds = columnClock(clock.steps, clock.elapsed_s)
  const moments = clock.at?.map((at) => (at === null ? null : Date.parse(at))) ?? null
  const measured = columnClock(clock.steps, moments, -Infinity)
  if (measured !== null) {
    const first = clock.steps[moments?.findIndex((moment) => moment !== null) ?? 0] ?? 0
    return (step) =>
      step >= first || seconds === null ? measured(step) : measured(first) - (seconds(first) - seconds(step)) * 1000
  }
  if (seconds === null || job.started_at === null) return null
  const end = job.finished_at === null ? now : Date.parse(job.finished_at)
  const total = seconds(clock.steps.at(-1) ?? 0)
  return (step) => end + (seconds(step) - total) * 1000
}
