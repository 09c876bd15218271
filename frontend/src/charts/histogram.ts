/** Bins of equal width over a set of values. */
import { roundTo } from '@/format/numbers'

export interface Bin {
  from: number
  to: number
  count: number
}

/**
 * Counts finite values in at most `maxBins` bins of equal, round width.
 *
 * Few distinct values (rewards of 0 and 1) get one narrow bin each, because a wide bin would hide that nothing lies
 * between them.
 */
export function binValues(values: readonly number[], maxBins = 20): Bin[] {
  const finite = values.filter(Number.isFinite)
  if (finite.length === 0) return []
  const low = Math.min(...finite)
  const high = Math.max(...finite)
  if (low === high) return [{ from: low, to: high, count: finite.length }]
  const distinct = [...new Set(finite)].sort((a, b) => a - b)
  if (distinct.length <= 6) {
    return distinct.map((value) => ({
      from: value,
      to: value,
      count: finite.filter((other) => other === value).length,
    }))
  }
  const width = roundWidth((high - low) / maxBins)
  const start = Math.floor(low / width) * width
  const count = Math.max(1, Math.floor((high - start) / width) + 1)
  const bins: Bin[] = Array.from({ length: count }, (_, index) => ({
    from: clean(start + index * width),
    to: clean(start + (index + 1) * width),
    count: 0,
  }))
  for (const value of finite) {
    const bin = bins[Math.min(count - 1, Math.floor((value - start) / width))]
    if (bin) bin.count += 1
  }
  return bins
}

/** The next of 1, 2, 5 × 10ⁿ. */
function roundWidth(width: number): number {
  const power = Math.pow(10, Math.floor(Math.log10(width)))
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= width * 0.999) ?? 10
  return factor * power
}

function clean(value: number): number {
  return roundTo(value, 12)
}
