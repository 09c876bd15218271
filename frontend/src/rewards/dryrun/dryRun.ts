/** What a dry run is asked, and how far it is. */
import type { DryRun } from '../types'

export interface Sample {
  dataset: string | null
  /** Branch, tag or id, and a split; null leaves them to the platform. */
  version: string | null
  split: string | null
  rows: number
  /** Role → column, where the platform's own choice does not do. */
  columns: Record<string, string>
  /** A job whose recorded responses are scored too. */
  job: string | null
  step: number | null
}

export const MAX_ROWS = 256

const OVER: ReadonlySet<DryRun['state']> = new Set<DryRun['state']>(['succeeded', 'failed', 'cancelled'])

export function isOver(run: DryRun): boolean {
  return OVER.has(run.state)
}

/** A share, or null while the amount of work is not known. */
export function progressOf(run: DryRun): number | null {
  const { done = 0, total = 0 } = run.progress
  return total === 0 ? null : done / total
}

/** Bars of a histogram from the counts between the edges, as wide as their bins. */
export function binsOf(
  edges: readonly number[],
  counts: readonly number[],
): { from: number; to: number; count: number }[] {
  return counts.map((count, index) => ({ from: edges[index] ?? 0, to: edges[index + 1] ?? 0, count }))
}
