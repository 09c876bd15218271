/** Launches that were begun and not sent. */
import { hasAllOf, keptDrafts } from '@/composables/keptDrafts'

import { type Draft, emptyDraft, overrideRow } from './draft'
import { emptySweep, type SweepDraft } from './sweep/draft'

export interface Kept {
  draft: Draft
  sweep: SweepDraft
}

function isKept(found: unknown): found is Kept {
  return (
    hasAllOf({ draft: null, sweep: null }, found) &&
    hasAllOf(emptyDraft(), (found as Kept).draft) &&
    hasAllOf(emptySweep(), (found as Kept).sweep)
  )
}

export function soundOf(found: unknown): Kept | null {
  if (!isKept(found)) return null
  const { draft, sweep } = found
  // Rows that are added later must not get the number of one of these.
  return { draft: { ...draft, overrides: draft.overrides.map((row) => overrideRow(row.key, row.text)) }, sweep }
}

export const keptLaunches = keptDrafts('launch', soundOf)
