/** Scales of parameters and of the objective, for the scatter and for parallel coordinates. */
import type { SweepRun } from '../types'

export interface Axis {
  name: string
  /** Place of a value from 0 to 1; null where it has none. */
  place(value: unknown): number | null
  ticks: { at: number; label: string }[]
}

/** A number axis is logarithmic where its values span more than a factor of thirty. */
const LOG_FROM = 30

export function isNumeric(values: readonly unknown[]): values is number[] {
  return values.length > 0 && values.every((value) => typeof value === 'number' && Number.isFinite(value))
}

export function wantsLog(values: readonly number[]): boolean {
  const low = Math.min(...values)
  return low > 0 && Math.max(...values) / low >= LOG_FROM
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
  const shown = few.length <= 4 ? few : [Math.min(...values), isLog ? 10 ** ((low + high) / 2) : (low + high) / 2, Math.max(...values)]
  return { name, place, ticks: shown.map((value) => ({ at: place(value) ?? 0, label: show(Number(value.toPrecision(3))) })) }
}

function listAxis(name: string, values: readonly unknown[], show: (value: unknown) => string): Axis {
  const known = unique(values.map((value) => String(value)))
  const place = (value: unknown): number | null => {
    const index = known.indexOf(String(value))
    if (index < 0) return null
    return known.length === 1 ? 0.5 : index / (known.length - 1)
  }
  return { name, place, ticks: known.map((value) => ({ at: place(value) ?? 0, label: show(value) })) }
}

/** Runs with a value, each with all that varies; the seed is a parameter where it does. */
export function measuredRuns(runs: readonly SweepRun[]): { run: SweepRun; values: Record<string, unknown>; value: number }[] {
  const hasSeeds = unique(runs.map((run) => run.seed)).length > 1
  return runs.flatMap((run) => (run.value === null ? [] : [{ run, values: hasSeeds ? { ...run.values, seed: run.seed } : run.values, value: run.value }]))
}

/** How good a value is, from 0 for the worst to 1 for the best. */
export function goodness(value: number, all: readonly number[], mode: 'min' | 'max'): number {
  const low = Math.min(...all)
  const high = Math.max(...all)
  if (high === low) return 1
  const share = (value - low) / (high - low)
  return mode === 'max' ? share : 1 - share
}
