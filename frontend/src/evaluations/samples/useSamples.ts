/** Samples of a benchmark page by page; a search goes on by itself until it has found something. */
import { computed, onScopeDispose, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { useCursorList } from '@/api/useCursorList'

import type { SamplePage } from '../types'
import { type SampleFilters, writePlace } from './filters'

const PAGE_SIZE = 50

export function useSamples(evaluationId: () => string, label: () => string, filters: () => SampleFilters) {
  /** Of the whole benchmark: stays while filters change. */
  const whole = shallowRef<Pick<SamplePage, 'counts' | 'groups' | 'changes' | 'fitting'> | null>(null)
  const key = computed(() => JSON.stringify([evaluationId(), label(), filters()]))
  let isOver = false
  onScopeDispose(() => (isOver = true))

  const list = useCursorList(
    async (cursor, signal) => {
      const { verdicts, group, search, against, changed } = filters()
      const query = {
        label: label(),
        cursor,
        limit: PAGE_SIZE,
        verdict: verdicts.length > 0 ? verdicts : undefined,
        group_kind: group?.kind,
        group: group?.name,
        search: search === '' ? undefined : search,
        against: against ?? undefined,
        changed: changed ?? undefined,
      }
      const page = await unwrap(
        api.GET('/api/v1/evaluations/{evaluation_id}/samples', {
          params: { path: { evaluation_id: evaluationId() }, query },
          signal,
        }),
      )
      whole.value = { counts: page.counts, groups: page.groups, changes: page.changes, fitting: page.fitting }
      return { ...page, items: page.items.map((sample) => ({ ...sample, id: writePlace(sample) })) }
    },
    { watch: key },
  )
  watch([label, evaluationId], () => (whole.value = null))

  const isSearching = computed(
    () => list.items.value.length === 0 && list.hasMore.value && list.moreError.value === null,
  )
  // An answer looks at a bounded number of samples: an empty one with a way on is no end.
  watch([isSearching, list.isLoadingMore], ([searching, loading]) => {
    if (searching && !loading && !isOver) void list.loadMore()
  })

  return { ...list, whole, isSearching }
}
