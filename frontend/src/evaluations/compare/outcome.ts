/** What a comparison of scores comes to, for a reader who knows no statistics. */
import type { components } from '@/api/schema'
import { formatFixed } from '@/format/numbers'

export type Comparison = components['schemas']['ComparisonRead']
export type ComparedTable = Comparison['benchmarks'][number]
export type ComparedBenchmark = components['schemas']['ComparedBenchmark']
export type Disagreement = components['schemas']['DisagreementRead']
export type ComparedAnswer = Disagreement['answers'][number]

/** How the page calls one of the evaluations. */
export interface SideName {
  id: string
  letter: string
  name: string
}

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
  return `= ${Number(formatFixed(p, p < 0.1 ? 3 : 2))}`
}

/** Where the problems that became better or worse are looked at. */
export function samplesOf(a: string, b: string, label: string, changed: 'better' | 'worse' | 'any') {
  return { name: 'evaluation', params: { id: b }, query: { tab: 'samples', label, against: a, changed } } as const
}

/** Axes of the radar, and the values of each evaluation on them: every benchmark's headline, as far as it is a share. */
export function shapesOf(
  comparison: Comparison,
  nameOf: (one: ComparedTable) => string,
  isShare: (metric: string) => boolean,
) {
  const scoreOf = (table: ComparedTable, id: string) =>
    id === comparison.baseline ? table.baseline : table.others.find((other) => other.evaluation_id === id)?.comparison.b
  const ids = comparison.evaluations.map((one) => one.id)
  const shown = comparison.benchmarks.filter(
    (table) => isShare(table.metric) && ids.every((id) => isPart(scoreOf(table, id)?.value ?? 0)),
  )
  return {
    axes: shown.map(nameOf),
    values: new Map(ids.map((id) => [id, shown.map((table) => scoreOf(table, id)?.value ?? null)])),
  }
}

function isPart(value: number): boolean {
  return value >= 0 && value <= 1
}
