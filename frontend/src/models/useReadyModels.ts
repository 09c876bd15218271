/** All models whose weights are here, to choose from. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'
import { useResource } from '@/api/useResource'

import type { Model } from './types'

const PAGE_SIZE = 200

export function useReadyModels() {
  const resource = useResource<Model[]>((signal) =>
    readAllPages((cursor) =>
      unwrap(api.GET('/api/v1/models', { params: { query: { state: 'ready', limit: PAGE_SIZE, cursor } }, signal })),
    ),
  )
  const options = computed(() => (resource.data.value ?? []).map((model) => ({ value: model.id, label: model.name })))
  return { resource, options }
}
