/** What was measured of tokens, and the colour that tells it. */
import type { TokenTrace } from '../../types'

export const MEASURES = ['log_prob', 'entropy', 'advantage', 'kl', 'difference'] as const
export type Measure = (typeof MEASURES)[number]

/** Values on both sides of zero; the others are large or small. */
const SIGNED: ReadonlySet<Measure> = new Set<Measure>(['advantage', 'difference'])
/** Text must stay readable on the darkest. */
const DARKEST = 45
/** Of a hundred values so many are at most as large as the end of the scale: a single one must not pale all others. */
const SCALE_SHARE = 0.98

/** Curves behind whose spikes tokens of this kind stand. */
const OF_METRIC: readonly [RegExp, Measure][] = [
  // Not ppo_kl: how far the policy moved within one update is measured of no token.
  [/(?<!ppo_)kl/i, 'kl'],
  [/entropy/i, 'entropy'],
  [/rollout_(probs|actor|importance|is)|rollout_corr\//, 'difference'],
  [/advantages|pg_loss|pg_clipfrac|grad_norm/, 'advantage'],
]

/** Those of a trace that the run measures. */
export function measuresOf(traces: readonly TokenTrace[]): Measure[] {
  return MEASURES.filter((measure) => traces.some((trace) => trace[measure] !== null))
}

/** The measure that a metric averages over tokens; null for one that is none of tokens. */
export function measureOfMetric(key: string): Measure | null {
  // The mismatch is told as a divergence too.
  if (key.startsWith('rollout_corr/')) return 'difference'
  return OF_METRIC.find(([pattern]) => pattern.test(key))?.[1] ?? null
}

/** With the response first that stands behind a spike of a measure's curve, as the trainer chooses it. */
export function rankBySize<T extends { trace: TokenTrace }>(items: readonly T[], measure: Measure): T[] {
  const sizes = new Map(items.map((item) => [item, sizeOf(item.trace, measure)]))
  return [...items].sort((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0))
}

/** Of differences the largest, of other measures the mean; values that are no numbers are beyond all others. */
function sizeOf(trace: TokenTrace, measure: Measure): number {
  if (trace.not_finite.length > 0) return Number.MAX_VALUE
  const sizes = (trace[measure] ?? []).flatMap((value) => (value === null ? [] : [Math.abs(value)]))
  if (sizes.length === 0) return -1
  return measure === 'difference' ? Math.max(...sizes) : sizes.reduce((sum, size) => sum + size, 0) / sizes.length
}

/** The size at which the colour is darkest, the same for all traces of a page; 0 where nothing was measured. */
export function scaleOf(traces: readonly TokenTrace[], measure: Measure): number {
  const sizes = traces
    .flatMap((trace) => (trace[measure] ?? []).flatMap((value) => (value === null ? [] : [Math.abs(value)])))
    .sort((a, b) => a - b)
  return sizes[Math.min(sizes.length - 1, Math.floor(sizes.length * SCALE_SHARE))] ?? 0
}

/** The ground of a token. */
export function shadeOf(value: number | null, scale: number, measure: Measure): string {
  if (value === null || scale === 0) return 'transparent'
  const share = Math.round(Math.min(1, Math.abs(value) / scale) * DARKEST)
  const color = !SIGNED.has(measure) ? 'var(--stopping)' : value < 0 ? 'var(--failed)' : 'var(--succeeded)'
  return `color-mix(in oklab, ${color} ${share}%, transparent)`
}

/** A number of the trace at a token. */
export function valueAt(trace: TokenTrace, measure: Measure, place: number): number | null {
  return trace[measure]?.[place] ?? null
}

export function measureIn(value: unknown): Measure | null {
  return MEASURES.find((one) => one === value) ?? null
}
