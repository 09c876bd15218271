/** The model that a training started from, as long as it is there: what one compares its result with. */
import { computed, type ComputedRef } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

import type { Model } from './types'

/** Its name; null for a model that was not trained here, or whose base is gone or not downloaded. */
export function useBaseModel(model: () => Pick<Model, 'lineage'> | null): ComputedRef<string | null> {
  const id = computed(() => model()?.lineage.model_id ?? null)
  const base = useResource(
    async (signal) =>
      id.value === null
        ? null
        : unwrap(api.GET('/api/v1/models/{model_id}', { params: { path: { model_id: id.value } }, signal })),
    { watch: id },
  )
  return computed(() => (base.data.value?.state === 'ready' ? base.data.value.name : null))
}
