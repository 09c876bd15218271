/** The versions of a dataset, of all branches or of one, with the names that they have. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { useCursorList } from '@/api/useCursorList'
import { useResource } from '@/api/useResource'

import type { Refs, Version } from './types'

export function useHistory(datasetId: () => string, branch: () => string | null) {
  const refs = useResource<Refs>(
    (signal) =>
      unwrap(api.GET('/api/v1/datasets/{dataset_id}/refs', { params: { path: { dataset_id: datasetId() } }, signal })),
    { watch: datasetId },
  )
  const list = useCursorList<Version>(
    (cursor, signal) =>
      unwrap(
        api.GET('/api/v1/datasets/{dataset_id}/versions', {
          params: { path: { dataset_id: datasetId() }, query: { branch: branch() ?? undefined, cursor } },
          signal,
        }),
      ),
    { watch: [datasetId, branch] },
  )

  async function reload(): Promise<void> {
    await Promise.all([refs.refresh(), list.reload()])
  }

  return { refs, list, versions: computed(() => list.items.value), reload }
}
