/** Names of versions, and the split that is meant where none is named: as the API chooses. */
import type { Refs } from './types'

/** Rows by split. */
export type Splits = Readonly<Record<string, number>>

/** The id of a branch's tip or a tagged version; anything else is taken for an id. */
export function resolveRevision(revision: string, refs: Refs | null): string {
  const named = [...(refs?.branches ?? []), ...(refs?.tags ?? [])].find((ref) => ref.name === revision)
  return named?.version ?? revision
}

/** The split that was asked for, else train, else the first. Null where there is none at all. */
export function chooseSplit(splits: Readonly<Record<string, number>>, wanted: string | null): string | null {
  const names = Object.keys(splits)
  if (wanted !== null && names.includes(wanted)) return wanted
  return names.includes('train') ? 'train' : (names[0] ?? null)
}

/** Splits of the version that the address names, else of the newest; null while they are not known. */
export function splitsShown(newest: Splits, revision: string | null, shown: { splits: Splits } | null): Splits | null {
  return revision === null ? newest : (shown?.splits ?? null)
}

/** Names of splits that are for validation, not for training. */
const HELD_OUT: ReadonlySet<string> = new Set(['validation', 'valid', 'val', 'dev', 'test', 'eval'])

/** What a job that begins on the page of a dataset reads: the version and the split shown. Looking at held-out rows asks for no training on them, and main and train are what the platform takes anyway. */
export function trainingQuery(
  dataset: string,
  revision: string | null,
  shown: { split: string } | null,
): Record<string, string> {
  const split = shown === null || shown.split === 'train' || HELD_OUT.has(shown.split) ? null : shown.split
  return { dataset, ...(revision === null ? {} : { version: revision }), ...(split === null ? {} : { split }) }
}

/** Digits that tell versions apart for a person. */
export function shortId(version: string): string {
  return version.slice(0, 8)
}
