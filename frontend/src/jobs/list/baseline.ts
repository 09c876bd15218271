/** How far a job's metric is from that of the job that the others are compared with. */
import type { Job } from '../types'

export interface Difference {
  /** In percent of the baseline's value; of a baseline at 0, the plain difference. */
  amount: number
  isPercent: boolean
  isBetter: boolean
}

/** Null where there is nothing to compare: the baseline itself, another metric, no value. */
export function compareWith(baseline: Job | null, job: Job, column: 'metricLast' | 'metricBest'): Difference | null {
  const own = job.metric
  const other = baseline?.metric ?? null
  if (baseline === null || baseline.id === job.id || own === null || other === null || own.key !== other.key) return null
  const value = column === 'metricLast' ? own.last : own.best
  const base = column === 'metricLast' ? other.last : other.best
  if (value === null || base === null || !Number.isFinite(value) || !Number.isFinite(base) || value === base) return null
  const isBetter = own.mode === 'min' ? value < base : value > base
  return base === 0 ? { amount: value, isPercent: false, isBetter } : { amount: (100 * (value - base)) / Math.abs(base), isPercent: true, isBetter }
}
