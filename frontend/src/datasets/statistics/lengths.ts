/** Distributions of lengths as they are drawn and told: bins of whole numbers, quantiles. */
import type { Bin } from '@/charts/histogram'

import type { Lengths } from '../types'

/** Bars from the first to the last that holds something; the bounds are whole numbers that both count to the bar. */
export function binsOfLengths(lengths: Lengths): Bin[] {
  const { edges, counts } = lengths.histogram ?? { edges: [], counts: [] }
  const first = counts.findIndex((count) => count > 0)
  const last = counts.findLastIndex((count) => count > 0)
  if (first === -1) return []
  return counts.slice(first, last + 1).map((count, index) => {
    const from = edges[first + index] ?? 0
    const next = edges[first + index + 1] ?? from + 1
    return { from, to: Math.max(from, next - 1), count }
  })
}

/** About the length that this share of all stays below, to within a bar. Null where nothing was counted. */
export function quantileOf(lengths: Lengths, share: number): number | null {
  if (lengths.count === 0 || lengths.histogram === undefined) return null
  const { edges, counts } = lengths.histogram
  const wanted = share * lengths.count
  let reached = 0
  let at = edges[0] ?? 0
  for (const [index, count] of counts.entries()) {
    const from = edges[index] ?? 0
    const to = edges[index + 1] ?? from
    if (count > 0) {
      at = to
      if (reached + count >= wanted) {
        at = from + (to - from) * Math.max(0, (wanted - reached) / count)
        break
      }
    }
    reached += count
  }
  return Math.min(Math.max(at, lengths.least), lengths.most)
}

export function meanOf(lengths: Lengths): number | null {
  return lengths.count === 0 ? null : lengths.total / lengths.count
}

/** The most frequent names and how many others there are. */
export function topOf(
  counts: Readonly<Record<string, number>>,
  most: number,
): { named: [string, number][]; others: number; total: number } {
  const ranked = Object.entries(counts).sort((a, b) => b[1] - a[1])
  const sum = (entries: [string, number][]) => entries.reduce((whole, [, count]) => whole + count, 0)
  return { named: ranked.slice(0, most), others: sum(ranked.slice(most)), total: sum(ranked) }
}
