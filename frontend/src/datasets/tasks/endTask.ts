/** Ends a task that nobody waits for any more. */
import { api, unwrap } from '@/api/client'
import { ApiError } from '@/api/errors'

/** It has ended meanwhile, or was deleted: what was wanted. */
const ENDED: ReadonlySet<string> = new Set(['data_task_finished', 'data_task_not_found'])

export async function endTask(id: string): Promise<void> {
  try {
    await unwrap(api.POST('/api/v1/data-tasks/{task_id}/cancel', { params: { path: { task_id: id } } }))
  } catch (cause) {
    if (!(cause instanceof ApiError) || !ENDED.has(cause.code)) throw cause
  }
}
