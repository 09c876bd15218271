/** How many rows the newest import did not take; only the number, for the page to tell that there are some. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

export function useQuarantine(dataset: () => string, changedAt: () => string | null) {
  const first = useResource(
    (signal) =>
      unwrap(
        api.GET('/api/v1/datasets/{dataset_id}/quarantine', {
          params: { path: { dataset_id: dataset() }, query: { limit: 1 } },
          signal,
        }),
      ),
    { watch: () => `${dataset()} ${changedAt() ?? ''}` },
  )
  return { count: computed(() => first.data.value?.row_count ?? 0), refresh: first.refresh }
}
