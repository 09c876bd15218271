/** What a step found beyond counts, in the forms that can be drawn. */
import { isRecord } from '@/api/json'
import type { Bin } from '@/charts/histogram'

import type { Row } from '../types'

export interface Standing {
  value: number
  row: Row
}

export type Finding =
  | { kind: 'histogram'; bins: Bin[]; count: number }
  | { kind: 'ranking'; lowest: Standing[]; highest: Standing[] }
  | { kind: 'tally'; counts: [name: string, count: number][]; others: number }
  | { kind: 'counts'; counts: [name: string, count: number][] }
  | { kind: 'value'; value: string | number | boolean }

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'number')
}

function readHistogram(value: Row): Finding | null {
  const { edges, counts } = value
  if (!isNumbers(edges) || !isNumbers(counts) || edges.length !== counts.length + 1) return null
  const bins = counts.map((count, index) => ({ from: edges[index] ?? 0, to: edges[index + 1] ?? 0, count }))
  return { kind: 'histogram', bins, count: counts.reduce((sum, count) => sum + count, 0) }
}

function readStandings(value: unknown): Standing[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((one: unknown) =>
    isRecord(one) && typeof one.value === 'number' && isRecord(one.row) ? [{ value: one.value, row: one.row }] : [],
  )
}

function readCounts(value: unknown): [string, number][] | null {
  if (!isRecord(value)) return null
  const entries = Object.entries(value)
  return entries.length > 0 && entries.every((entry): entry is [string, number] => typeof entry[1] === 'number')
    ? entries
    : null
}

/** Null for what has no drawing here (files, lists that other parts of the page show). */
export function readFinding(value: unknown): Finding | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return { kind: 'value', value }
  if (!isRecord(value)) return null
  if (value.kind === 'histogram') return readHistogram(value)
  if (value.kind === 'ranking')
    return { kind: 'ranking', lowest: readStandings(value.lowest), highest: readStandings(value.highest) }
  if (value.kind === 'tally') {
    const counts = readCounts(value.counts)
    return counts === null
      ? null
      : {
          kind: 'tally',
          counts: counts.sort((a, b) => b[1] - a[1]),
          others: typeof value.others === 'number' ? value.others : 0,
        }
  }
  const counts = readCounts(value)
  return counts === null ? null : { kind: 'counts', counts }
}

/** Empty bins at both ends say nothing. */
export function trimBins(bins: readonly Bin[]): Bin[] {
  const first = bins.findIndex((bin) => bin.count > 0)
  if (first < 0) return []
  const last = bins.findLastIndex((bin) => bin.count > 0)
  return bins.slice(first, last + 1)
}

/** Mean of counted values, by the middle of their bins; null where there are none. */
export function meanOf(bins: readonly Bin[]): number | null {
  const count = bins.reduce((sum, bin) => sum + bin.count, 0)
  if (count === 0) return null
  return bins.reduce((sum, bin) => sum + bin.count * ((bin.from + bin.to) / 2), 0) / count
}

/** How many values lie below a bound; a bin that it cuts counts by its share. */
export function countBelow(bins: readonly Bin[], bound: number): number {
  return bins.reduce((sum, bin) => {
    if (bin.to <= bound) return sum + bin.count
    if (bin.from >= bound || bin.to === bin.from) return sum
    return sum + (bin.count * (bound - bin.from)) / (bin.to - bin.from)
  }, 0)
}
