/** What can be done to a task from its page. */
import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'

import type { DataTask } from '../types'

/** `onChanged` gets the task as it is after what was asked for. */
export function useTaskActions(onChanged: (task: DataTask) => void) {
  const { isBusy, attempt } = useAttempt()

  async function cancel(id: string): Promise<void> {
    await attempt(async () => {
      onChanged(await unwrap(api.POST('/api/v1/data-tasks/{task_id}/cancel', { params: { path: { task_id: id } } })))
    })
  }

  async function retry(id: string): Promise<void> {
    await attempt(async () => {
      onChanged(await unwrap(api.POST('/api/v1/data-tasks/{task_id}/retry', { params: { path: { task_id: id } } })))
    })
  }

  return { isBusy, cancel, retry }
}
