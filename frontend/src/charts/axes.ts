/** Scales of parameters and of a metric, for the scatter and for parallel coordinates. */
import { formatNumber, roundTo } from '@/format/numbers'
import { formatParameter } from '@/format/parameter'

/** One run: what it was set to, and what came of it. */
export interface ParameterRow {
  id: number
  label: string
  values: Record<string, unknown>
  /** The metric. */
  value: number
  color?: string
  /** Did not run to its end: drawn hollow. */
  isPartial?: boolean
}

export interface Axis {
  name: string
  /** Place of a value from 0 to 1; null where it has none. */
  place(value: unknown): number | null
  ticks: { at: number; label: string }[]
}

/** A number axis is logarithmic where its values span more than a factor of thirty. */
const LOG_FROM = 30
/** Words of one axis, as many as can be read above each other. */
const MOST_TICKS = 10

export function isNumeric(values: readonly unknown[]): values is number[] {
  return values.length > 0 && values.every((value) => typeof value === 'number' && Number.isFinite(value))
}

export function wantsLog(values: readonly number[]): boolean {
  const low = Math.min(...values)
  return low > 0 && Math.max(...values) / low >= LOG_FROM
}

/** Lists and objects are the same where they read the same. */
function keyOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)]
}

export function makeAxis(name: string, values: readonly unknown[], show: (value: unknown) => string): Axis {
  return isNumeric(values) ? numberAxis(name, values, show) : listAxis(name, values, show)
}

function numberAxis(name: string, values: readonly number[], show: (value: unknown) => string): Axis {
  const isLog = wantsLog(values)
  const map = (value: number): number => (isLog ? Math.log10(value) : value)
  const low = map(Math.min(...values))
  const high = map(Math.max(...values))
  const place = (value: unknown): number | null => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return null
    return high === low ? 0.5 : (map(value) - low) / (high - low)
  }
  const few = unique(values)
  const shown =
    few.length <= 4
      ? few
      : [Math.min(...values), isLog ? 10 ** ((low + high) / 2) : (low + high) / 2, Math.max(...values)]
  return { name, place, ticks: shown.map((value) => ({ at: place(value) ?? 0, label: show(roundTo(value, 3)) })) }
}

function listAxis(name: string, values: readonly unknown[], show: (value: unknown) => string): Axis {
  const known = new Map(values.map((value) => [keyOf(value), value]))
  const keys = [...known.keys()]
  const place = (value: unknown): number | null => {
    const index = keys.indexOf(keyOf(value))
    if (index < 0) return null
    return keys.length === 1 ? 0.5 : index / (keys.length - 1)
  }
  const every = Math.ceil(keys.length / MOST_TICKS)
  const shown = [...known.values()].filter((_, index) => index % every === 0)
  return { name, place, ticks: shown.map((value) => ({ at: place(value) ?? 0, label: show(value) })) }
}

/** Parameters that any of the runs has, in their order. */
export function listParameters(rows: readonly ParameterRow[]): string[] {
  return unique(rows.flatMap((row) => Object.keys(row.values)))
}

/** Of one parameter over all runs that have it. */
export function parameterAxis(name: string, rows: readonly ParameterRow[]): Axis {
  return makeAxis(
    name,
    rows.flatMap((row) => (row.values[name] == null ? [] : [row.values[name]])),
    formatParameter,
  )
}

export function metricAxis(metric: string, rows: readonly ParameterRow[]): Axis {
  return makeAxis(
    metric,
    rows.map((row) => row.value),
    (value) => formatNumber(Number(value)),
  )
}

/** How good a value is, from 0 for the worst to 1 for the best; of a metric without a better end all are alike. */
export function goodness(value: number, all: readonly number[], mode: 'min' | 'max' | null): number {
  const low = Math.min(...all)
  const high = Math.max(...all)
  if (high === low || mode === null) return 1
  const share = (value - low) / (high - low)
  return mode === 'max' ? share : 1 - share
}
