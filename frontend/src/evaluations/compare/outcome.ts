/** What a comparison of two scores comes to, for a reader who knows no statistics. */
import type { components } from '@/api/schema'

export type Comparison = components['schemas']['ComparisonRead']
export type ComparedBenchmark = components['schemas']['ComparedBenchmark']

/** Below this a difference is called one: the usual bound. */
export const LEVEL = 0.05

/** higher and lower are of b against a; same: not one problem differs; unclear: chance may explain it; untested: no pairs. */
export type Outcome = 'higher' | 'lower' | 'same' | 'unclear' | 'untested'

export function outcomeOf({ p_value: p, difference, pairs, improved, worsened, obstacle }: ComparedBenchmark): Outcome {
  if (p === null || pairs === 0 || obstacle !== null) return 'untested'
  if (difference === 0 && improved === 0 && worsened === 0) return 'same'
  if (p >= LEVEL) return 'unclear'
  return difference > 0 ? 'higher' : 'lower'
}

/** "= 0.042", "< 0.001": more digits than that say nothing. */
export function sayP(p: number): string {
  if (p < 0.001) return '< 0.001'
  if (p >= 0.9995) return '> 0.999'
  return `= ${Number(p.toFixed(p < 0.1 ? 3 : 2))}`
}

/** Where the problems that became better or worse are looked at. */
export function samplesOf(a: string, b: string, label: string, changed: 'better' | 'worse' | 'any') {
  return { name: 'evaluation', params: { id: b }, query: { tab: 'samples', label, against: a, changed } } as const
}

/** Axes and shapes of the radar: each benchmark's headline, as far as it is a share. */
export function shapesOf(comparison: Comparison, nameOf: (one: ComparedBenchmark) => string, isShare: (metric: string) => boolean) {
  const shown = comparison.benchmarks.filter((one) => isShare(one.metric) && one.a.value >= 0 && one.a.value <= 1 && one.b.value >= 0 && one.b.value <= 1)
  return {
    axes: shown.map(nameOf),
    a: shown.map((one) => one.a.value),
    b: shown.map((one) => one.b.value),
  }
}
