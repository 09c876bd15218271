/** New pipelines that were begun and not created. */
import { hasAllOf, keptDrafts } from '@/composables/keptDrafts'

import { emptyDraft, type PipelineDraft } from './draft'

export interface KeptPipeline {
  draft: PipelineDraft
  template: string | null
  /** Where it says something else than the form. */
  text: string | null
}

function isKept(found: unknown): found is KeptPipeline {
  return (
    hasAllOf({ draft: null, template: null, text: null }, found) &&
    hasAllOf(emptyDraft(), (found as KeptPipeline).draft)
  )
}

export const keptPipelines = keptDrafts('pipeline', (found) => (isKept(found) ? found : null))
