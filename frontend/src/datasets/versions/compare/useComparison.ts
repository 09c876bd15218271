/** One comparison of two versions: asked for when the pair changes, followed until it is there. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

import { isOver } from '../../tasks/useDataTask'
import type { Diff } from '../types'

export interface Pair {
  before: string
  after: string
  key: string | null
}

const POLL_MS = 800

export function isComputed(diff: Diff): boolean {
  return diff.total !== null
}

function isAwaited(diff: Diff | null): boolean {
  return diff !== null && !isComputed(diff) && diff.task !== null && !isOver(diff.task)
}

export function useComparison(datasetId: () => string, pair: () => Pair | null) {
  /** What was asked for last: asking again is only needed for another pair, or after a failure. */
  let asked = ''

  const diff = useResource<Diff | null>(
    async (signal) => {
      const wanted = pair()
      if (wanted === null) return null
      const path = { dataset_id: datasetId() }
      const name = JSON.stringify(wanted)
      if (name === asked)
        return unwrap(
          api.GET('/api/v1/datasets/{dataset_id}/diff', {
            params: { path, query: { ...wanted, key: wanted.key ?? undefined } },
            signal,
          }),
        )
      const answer = await unwrap(
        api.POST('/api/v1/datasets/{dataset_id}/diff', { params: { path }, body: wanted, signal }),
      )
      asked = name
      return answer
    },
    {
      watch: () => JSON.stringify(pair()),
      intervalMs: (it) => (isAwaited(it) ? POLL_MS : null),
      onReset: () => {
        asked = ''
      },
    },
  )

  async function again(): Promise<void> {
    asked = ''
    await diff.refresh()
  }

  return { diff, isRunning: computed(() => isAwaited(diff.data.value)), again }
}
