/** One evaluation, read anew while it moves. */
import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { isActive } from '@/jobs'

const RUNNING_MS = 2_000

export function useEvaluation(id: () => string) {
  return useResource(
    (signal) =>
      unwrap(api.GET('/api/v1/evaluations/{evaluation_id}', { params: { path: { evaluation_id: id() } }, signal })),
    {
      watch: id,
      intervalMs: (read) => (read !== null && isActive(read.state) ? RUNNING_MS : null),
    },
  )
}
