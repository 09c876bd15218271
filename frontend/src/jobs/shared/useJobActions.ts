/** What can be done to a job, with the question before it and the notice after it. */
import { ref } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { formatStep } from '@/format/numbers'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Job, JobUpdate } from '../types'

export function useJobActions(onChanged: (job: Job) => void, onDeleted: (jobId: string) => void) {
  const { t } = useI18n()
  const router = useRouter()
  const confirm = useConfirm()
  const toast = useToast()
  /** The job that an answer is awaited for. */
  const busyId = ref<string | null>(null)

  async function run(job: Job, act: () => Promise<void>): Promise<void> {
    busyId.value = job.id
    try {
      await act()
    } catch (cause) {
      toast.failure(cause)
    } finally {
      busyId.value = null
    }
  }

  async function stop(job: Job): Promise<void> {
    const text = job.state === 'queued' ? t('jobs.action.stopQueuedText') : t('jobs.action.stopText')
    if (
      !(await confirm({ title: t('jobs.action.stopTitle', { name: job.name }), text, action: t('jobs.action.stop') }))
    )
      return
    await run(job, async () => {
      onChanged(await unwrap(api.POST('/api/v1/jobs/{job_id}/stop', { params: { path: { job_id: job.id } } })))
      toast.success(t('jobs.action.stopped', { name: job.name }))
    })
  }

  async function resume(job: Job, checkpointStep: number | null = null): Promise<void> {
    const text =
      checkpointStep === null
        ? t('jobs.action.resumeText')
        : t('jobs.action.resumeFromText', { step: formatStep(checkpointStep) })
    if (
      !(await confirm({
        title: t('jobs.action.resumeTitle', { name: job.name }),
        text,
        action: t('jobs.action.resume'),
      }))
    )
      return
    await run(job, async () => {
      const body = { checkpoint_step: checkpointStep }
      onChanged(await unwrap(api.POST('/api/v1/jobs/{job_id}/resume', { params: { path: { job_id: job.id } }, body })))
      toast.success(t('jobs.action.resumed', { name: job.name }))
    })
  }

  async function remove(job: Job): Promise<void> {
    const isSure = await confirm({
      title: t('jobs.action.deleteTitle', { name: job.name }),
      text: t('jobs.action.deleteText'),
      action: t('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await run(job, async () => {
      await unwrap(api.DELETE('/api/v1/jobs/{job_id}', { params: { path: { job_id: job.id } } }))
      toast.success(t('jobs.action.deleted', { name: job.name }))
      onDeleted(job.id)
    })
  }

  /** Changes what people wrote about the job; false where the platform refused it, which it says itself. */
  async function edit(job: Job, changes: JobUpdate): Promise<boolean> {
    try {
      onChanged(
        await unwrap(api.PATCH('/api/v1/jobs/{job_id}', { params: { path: { job_id: job.id } }, body: changes })),
      )
      return true
    } catch (cause) {
      toast.failure(cause)
      return false
    }
  }

  /** Opens the form filled in like the job, so that something can be changed before the launch. */
  /** With `hasChanges`, the form holds what is suggested against the job's failure. */
  function clone(job: Job, hasChanges = false): void {
    void router.push({ name: 'launch', query: { clone: job.id, ...(hasChanges ? { fix: '1' } : {}) } })
  }

  return { busyId, stop, resume, remove, clone, edit }
}
