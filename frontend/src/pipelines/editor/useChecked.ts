/** What the API says of a pipeline, a moment after the last change. */
import { api, unwrap } from '@/api/client'
import { useDebouncedQuery } from '@/api/useDebouncedQuery'

import type { Pipeline, PipelineChecked } from '../types'
import type { PreviewRequest } from './usePreviewRun'

export interface CheckRequest {
  pipeline: Pipeline
  dataset: string | null
  version: string | null
  /** Further inputs by their names. */
  resources: PreviewRequest['resources']
}

/** `request` gives null while there is nothing to check. */
export function useChecked(request: () => CheckRequest | null) {
  return useDebouncedQuery<CheckRequest, PipelineChecked>(request, ({ pipeline, ...on }, signal) =>
    unwrap(api.POST('/api/v1/pipelines/validate', { body: { pipeline: { ...pipeline }, ...on }, signal })),
  )
}
