/** Benchmarks that a model, or the checkpoint it was made of, was measured on: what a gate can be made of. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

export function useMeasuredOn(model: () => string | null) {
  const resource = useResource(
    async (signal) => {
      const id = model()
      return id === null
        ? []
        : (await unwrap(api.GET('/api/v1/evaluations/history', { params: { query: { model: id } }, signal }))).items
    },
    { watch: model },
  )
  const labels = computed(() => [...new Set((resource.data.value ?? []).map(({ label }) => label))].sort())
  return { labels }
}
