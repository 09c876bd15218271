/** The rewards that this platform has, and what their options may point to. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

const LIMIT = 200

export interface SourceItem {
  value: string
  label: string
}

/** Judges are not here: an option lists those that are set up as its choices. */
export type RewardSources = Readonly<Record<'reward-files' | 'models', readonly SourceItem[]>>

export function useRewardKinds() {
  const kinds = useResource((signal) => unwrap(api.GET('/api/v1/rewards', { signal })))
  const files = useResource((signal) =>
    unwrap(api.GET('/api/v1/rewards/files', { params: { query: { limit: LIMIT } }, signal })),
  )
  const models = useResource((signal) =>
    unwrap(api.GET('/api/v1/models', { params: { query: { limit: LIMIT } }, signal })),
  )

  const sources = computed<RewardSources>(() => ({
    'reward-files': (files.data.value?.items ?? []).map((file) => ({ value: file.id, label: file.name })),
    models: (models.data.value?.items ?? [])
      .filter((model) => model.state === 'ready')
      .map((model) => ({ value: model.id, label: model.name })),
  }))

  return { kinds, files, sources }
}
