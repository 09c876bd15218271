/** Datasets that stages can be given, read once for all of them. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'
import { useResource } from '@/api/useResource'
import type { Dataset } from '@/datasets'

const PAGE_SIZE = 200

export interface RowSource {
  id: string
  name: string
  format: Dataset['format']
  splits: string[]
  isReady: boolean
}

export function useRowSources() {
  const datasets = useResource<Dataset[]>((signal) =>
    readAllPages((cursor) =>
      unwrap(api.GET('/api/v1/datasets', { params: { query: { limit: PAGE_SIZE, cursor } }, signal })),
    ),
  )
  const sources = computed<RowSource[]>(() =>
    (datasets.data.value ?? []).map((one) => ({
      id: one.id,
      name: one.name,
      format: one.format,
      splits: Object.keys(one.splits ?? {}),
      isReady: one.head !== null,
    })),
  )
  return { datasets, sources }
}
