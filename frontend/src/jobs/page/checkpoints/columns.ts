/** Which figures of the checkpoints stand in the table. */
import type { Checkpoint } from '../../types'

/** More than this makes the table wider than a screen; the reader can choose others. */
const SHOWN_UNASKED = 3

/** All keys that any checkpoint has a figure for. */
export function metricKeys(checkpoints: readonly Checkpoint[]): string[] {
  return [...new Set(checkpoints.flatMap((checkpoint) => Object.keys(checkpoint.metrics)))].sort()
}

/** The metric that decides first, then the job's headline metrics, then the rest, as far as there is room. */
export function columnsUnasked(keys: readonly string[], headline: readonly string[], bestBy: string | null): string[] {
  const wanted = [...(bestBy === null ? [] : [bestBy]), ...headline, ...keys]
  return [...new Set(wanted.filter((key) => keys.includes(key)))].slice(0, SHOWN_UNASKED)
}
