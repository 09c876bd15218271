/** A run, read again until it is over. */
import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { isOver } from '@/datasets'

import type { Run } from '../types'

const POLL_MS = 800

export function useRun(id: () => string | null) {
  return useResource<Run | null>(
    async (signal) => {
      const wanted = id()
      return wanted === null
        ? null
        : unwrap(api.GET('/api/v1/pipelines/runs/{task_id}', { params: { path: { task_id: wanted } }, signal }))
    },
    { watch: id, intervalMs: (run) => (run === null || isOver(run.task) ? null : POLL_MS) },
  )
}
