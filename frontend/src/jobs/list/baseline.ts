/** How far a job's metric is from that of the job that the others are compared with. */
import type { Job } from '../types'

export interface Difference {
  /** In percent of the baseline's value; of a baseline at 0, the plain difference. */
  amount: number
  isPercent: boolean
  /** Null where neither more nor less is better. */
  isBetter: boolean | null
}

/** A column whose values are those of a metric. */
export type MetricColumn = 'metricLast' | 'metricBest' | `metrics.${string}`

interface Measured {
  value: number
  mode: 'min' | 'max' | null
  /** Values of different metrics say nothing beside each other. */
  key: string
}

function measuredIn(job: Job, column: MetricColumn): Measured | null {
  if (column !== 'metricLast' && column !== 'metricBest') {
    const value = job.fields[column]
    return typeof value === 'number' ? { value, mode: job.field_modes[column] ?? null, key: column } : null
  }
  const value = column === 'metricLast' ? job.metric?.last : job.metric?.best
  return job.metric === null || value == null ? null : { value, mode: job.metric.mode, key: job.metric.key }
}

/** Whether a job has a value that others can be compared with. */
export function isComparable(job: Job): boolean {
  return (
    job.metric !== null ||
    Object.entries(job.fields).some(([column, value]) => column.startsWith('metrics.') && typeof value === 'number')
  )
}

/** Null where there is nothing to compare: the baseline itself, another metric, no value. */
export function compareWith(baseline: Job | null, job: Job, column: MetricColumn): Difference | null {
  if (baseline === null || baseline.id === job.id) return null
  const own = measuredIn(job, column)
  const other = measuredIn(baseline, column)
  if (own === null || other === null || own.key !== other.key) return null
  const [value, base] = [own.value, other.value]
  if (!Number.isFinite(value) || !Number.isFinite(base) || value === base) return null
  const isBetter = own.mode === null ? null : own.mode === 'min' ? value < base : value > base
  return base === 0
    ? { amount: value, isPercent: false, isBetter }
    : { amount: (100 * (value - base)) / Math.abs(base), isPercent: true, isBetter }
}
