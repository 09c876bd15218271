/** Long work on data, followed until it is over. */
import type { MaybeRefOrGetter } from 'vue'
import { computed, toValue } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { useAttempt } from '@/ui/useAttempt'

import type { DataTask, TaskProgressRead } from '../types'

const POLL_MS = 700

const OVER: ReadonlySet<DataTask['state']> = new Set<DataTask['state']>(['succeeded', 'failed', 'cancelled'])

export function isOver(task: Pick<DataTask, 'state'>): boolean {
  return OVER.has(task.state)
}

/** A share, or null while the amount of work is not known. */
export function fractionOf(progress: TaskProgressRead): number | null {
  const rows = progress.rows ?? 0
  return rows <= 0 ? null : Math.min(1, progress.rows_done / rows)
}

/** Reads a task over and over while it waits or runs; without an id there is none. */
export function useDataTask(id: MaybeRefOrGetter<string | null>) {
  const { isBusy, attempt } = useAttempt()
  const wanted = computed(() => toValue(id))
  const resource = useResource<DataTask | null>(
    async (signal) =>
      wanted.value === null
        ? null
        : unwrap(api.GET('/api/v1/data-tasks/{task_id}', { params: { path: { task_id: wanted.value } }, signal })),
    { watch: wanted, intervalMs: (task) => (task === null || isOver(task) ? null : POLL_MS) },
  )
  const task = resource.data

  async function cancel(): Promise<void> {
    const task_id = wanted.value
    if (task_id === null) return
    await attempt(async () => {
      task.value = await unwrap(api.POST('/api/v1/data-tasks/{task_id}/cancel', { params: { path: { task_id } } }))
    })
  }

  async function retry(): Promise<void> {
    const task_id = wanted.value
    if (task_id === null) return
    await attempt(async () => {
      task.value = await unwrap(api.POST('/api/v1/data-tasks/{task_id}/retry', { params: { path: { task_id } } }))
    })
  }

  return {
    task,
    resource,
    error: resource.error,
    isRunning: computed(() => task.value !== null && !isOver(task.value)),
    isBusy,
    cancel,
    retry,
  }
}
