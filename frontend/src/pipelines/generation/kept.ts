/** Generations that were begun and not started, each for the rows that it begins with. */
import { hasAllOf, keptDrafts } from '@/composables/keptDrafts'

import { type GenerationDraft, newDraft } from './draft'

export interface KeptGeneration {
  draft: GenerationDraft
  /** The dataset with the rows; null where none was chosen. */
  seeds: string | null
}

function isKept(found: unknown): found is KeptGeneration {
  return hasAllOf({ draft: null, seeds: null }, found) && hasAllOf(newDraft(''), (found as KeptGeneration).draft)
}

export const keptGenerations = keptDrafts('generation', (found) => (isKept(found) ? found : null))
