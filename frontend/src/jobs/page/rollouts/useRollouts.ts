/** The responses of a step, page by page. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import type { operations } from '@/api/schema'
import { useCursorList } from '@/api/useCursorList'

import type { Rollout } from '../../types'

type Query = NonNullable<operations['list_rollouts_api_v1_jobs__job_id__rollouts_get']['parameters']['query']>
/** Which responses, and in what order. */
export type RolloutQuery = Required<Pick<Query, 'step' | 'split'>> & Pick<Query, 'stop_reason' | 'min_score' | 'max_score' | 'order'>

export function useRollouts(jobId: string, query: () => RolloutQuery) {
  const list = useCursorList<Rollout>(
    (cursor, signal) => unwrap(api.GET('/api/v1/jobs/{job_id}/rollouts', { params: { path: { job_id: jobId }, query: { ...query(), cursor } }, signal })),
    { watch: () => JSON.stringify(query()) },
  )
  /** How many there are on all pages; of the first one, as a later one may still belong to another query. */
  const total = computed(() => list.first.data.value?.total ?? 0)
  return { ...list, total }
}
