/** Figures of the tables, and the tables as CSV. */
import type { components } from '@/api/schema'
import type { Curve } from '@/charts/curve'
import { formatWholeParameter } from '@/format/parameter'

export type Comparison = components['schemas']['JobComparison']
export type ComparedMetric = components['schemas']['ComparedMetric']

export interface Difference {
  absolute: number
  /** Of the baseline's size; null where that is 0. */
  share: number | null
  isBetter: boolean | null
}

/** Null beside the baseline itself and where a value is missing. */
export function differenceTo(
  value: number | null | undefined,
  base: number | null | undefined,
  mode: 'max' | 'min' | null,
): Difference | null {
  if (value == null || base == null) return null
  const absolute = value - base
  return {
    absolute,
    share: base === 0 ? null : absolute / Math.abs(base),
    isBetter: absolute === 0 || mode === null ? null : mode === 'max' ? absolute > 0 : absolute < 0,
  }
}

/** A setting's value as text: numbers as in every list, what is no text as JSON. */
export function showValue(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number') return formatWholeParameter(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A cell as RFC 4180 has it; what a spreadsheet would take for a formula becomes text. */
export function csvCell(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : showValue(value)
  const safe = typeof value !== 'number' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function csv(rows: readonly (readonly unknown[])[]): string {
  return rows.map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n'
}

/** A row for every job: settings that differ, then last and best of every metric. */
export function tableCsv(found: Comparison): string {
  const heads = [
    'id',
    'name',
    'state',
    ...found.parameters.map((row) => `${row.group}.${row.name}`),
    ...found.metrics.flatMap((row) => [`${row.key} last`, `${row.key} best`, `${row.key} best step`]),
  ]
  const rows = found.jobs.map((job) => [
    job.id,
    job.name,
    job.state,
    ...found.parameters.map((row) => row.values[job.id]),
    ...found.metrics.flatMap((row) => {
      const value = row.values[job.id]
      return [value?.last, value?.best, value?.best_step]
    }),
  ])
  return csv([heads, ...rows])
}

/** A row for every point that was read. */
export function curvesCsv(
  jobs: readonly { id: string; name: string }[],
  curves: ReadonlyMap<string, ReadonlyMap<string, Curve>>,
  keys: readonly string[],
): string {
  const rows = jobs.flatMap((job) =>
    keys.flatMap((key) => {
      const curve = curves.get(job.id)?.get(key)
      return curve === undefined
        ? []
        : curve.steps.map((step, index) => [job.id, job.name, key, step, curve.values[index]])
    }),
  )
  return csv([['id', 'name', 'metric', 'step', 'value'], ...rows])
}
