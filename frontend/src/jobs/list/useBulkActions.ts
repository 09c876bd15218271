/** One action on several jobs, one request after the other: what the platform refuses for one does not hold up the rest. */
import { ref } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { asApiError } from '@/api/errors'
import { useErrorText } from '@/i18n/useErrorText'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Job } from '../types'

export type BulkAction = 'stop' | 'clone' | 'delete' | 'tag'

export interface BulkOutcome {
  done: string[]
  failed: { name: string; cause: unknown }[]
}

/** Every job is tried, in order. */
export async function runAll(jobs: readonly Job[], act: (job: Job) => Promise<unknown>): Promise<BulkOutcome> {
  const outcome: BulkOutcome = { done: [], failed: [] }
  for (const job of jobs) {
    try {
      await act(job)
      outcome.done.push(job.id)
    } catch (cause) {
      outcome.failed.push({ name: job.name, cause })
    }
  }
  return outcome
}

const ABLE = {
  stop: (job: Job) => job.can_stop,
  clone: (job: Job) => job.can_clone,
  delete: (job: Job) => job.can_delete,
  tag: () => true,
}

function request(action: BulkAction, job: Job, tag: string): Promise<unknown> {
  const params = { path: { job_id: job.id } }
  if (action === 'stop') return unwrap(api.POST('/api/v1/jobs/{job_id}/stop', { params }))
  if (action === 'clone') return unwrap(api.POST('/api/v1/jobs/{job_id}/clone', { params }))
  if (action === 'delete') return unwrap(api.DELETE('/api/v1/jobs/{job_id}', { params }))
  return unwrap(api.PATCH('/api/v1/jobs/{job_id}', { params, body: { add_tags: [tag] } }))
}

export function useBulkActions(onDone: (action: BulkAction, done: readonly string[]) => void) {
  const { t } = useI18n()
  const confirm = useConfirm()
  const toast = useToast()
  const errorText = useErrorText()
  const busy = ref<BulkAction | null>(null)

  async function run(action: BulkAction, jobs: readonly Job[], tag = ''): Promise<void> {
    const able = jobs.filter(ABLE[action])
    if (able.length === 0 || busy.value !== null) return
    const count = able.length
    const names =
      able
        .slice(0, 5)
        .map((job) => job.name)
        .join(', ') + (count > 5 ? ' …' : '')
    const isSure =
      action === 'tag' ||
      (await confirm({
        title: t(`jobs.bulk.${action}Title`, { count }, count),
        text: `${names}. ${t(`jobs.bulk.${action}Text`)}`,
        action: t(`jobs.bulk.${action}Do`),
        isDangerous: action === 'delete',
      }))
    if (!isSure) return
    busy.value = action
    const { done, failed } = await runAll(able, (job) => request(action, job, tag))
    busy.value = null
    if (done.length > 0) toast.success(t(`jobs.bulk.${action}Done`, { count: done.length, tag }, done.length))
    const first = failed[0]
    if (first !== undefined)
      toast.problem(
        t(
          'jobs.bulk.failed',
          { count: failed.length, name: first.name, reason: errorText(asApiError(first.cause)) },
          failed.length,
        ),
      )
    onDone(action, done)
  }

  return { busy, run }
}
