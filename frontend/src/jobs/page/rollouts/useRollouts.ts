/** The responses of a step, page by page. */
import { computed, shallowRef } from 'vue'

import { api, unwrap } from '@/api/client'
import type { operations } from '@/api/schema'
import { useCursorList } from '@/api/useCursorList'

import type { Rollout, RolloutGroupRead, RolloutStep } from '../../types'
import { byId } from './groups'

type Query = NonNullable<operations['list_rollouts_api_v1_jobs__job_id__rollouts_get']['parameters']['query']>
/** Which responses, and in what order. */
export type RolloutQuery = Required<Pick<Query, 'step' | 'split'>> &
  Omit<Query, 'step' | 'split' | 'cursor' | 'trajectories'>

export function useRollouts(jobId: string, query: () => RolloutQuery) {
  return useGroupedList(
    (cursor, signal) =>
      unwrap(
        api.GET('/api/v1/jobs/{job_id}/rollouts', {
          params: { path: { job_id: jobId }, query: { ...query(), cursor } },
          signal,
        }),
      ),
    () => JSON.stringify(query()),
  )
}

/** The responses to one prompt, newest step first. */
export function usePromptRollouts(
  jobId: string,
  query: () => { key: string; split: RolloutStep['split']; toStep: number | null },
) {
  return useGroupedList(
    (cursor, signal) => {
      const { key, split, toStep } = query()
      const place = { path: { job_id: jobId, prompt_key: key }, query: { split, to_step: toStep ?? undefined, cursor } }
      return unwrap(api.GET('/api/v1/jobs/{job_id}/prompts/{prompt_key}/rollouts', { params: place, signal }))
    },
    () => JSON.stringify(query()),
  )
}

interface GroupedPage {
  items: Rollout[]
  groups: RolloutGroupRead[]
  next_cursor?: string | null
  total: number
}

function useGroupedList(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<GroupedPage>,
  watch: () => string,
) {
  const groups = shallowRef<ReadonlyMap<string, RolloutGroupRead>>(new Map())
  const list = useCursorList<Rollout>(
    async (cursor, signal) => {
      const page = await load(cursor, signal)
      groups.value = new Map([...groups.value, ...byId(page.groups)])
      return page
    },
    { watch },
  )
  /** How many there are on all pages; of the first one, as a later one may still belong to another query. */
  const total = computed(() => list.first.data.value?.total ?? 0)
  return { ...list, groups, total }
}
