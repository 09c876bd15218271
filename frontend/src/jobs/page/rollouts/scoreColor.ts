/** The colour of a score between the lowest and the highest of its step; the number beside it says the same. */
import { position } from './groups'

export function scoreColor(score: number | null, low: number, high: number): string {
  if (score === null) return 'var(--ink-faint)'
  const share = Math.round(position(score, low, high) * 100)
  return `color-mix(in oklab, var(--succeeded) ${share}%, var(--failed))`
}
