/** Keeping and deleting checkpoints, with the question before and the notice after. */
import { ref } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { formatStep } from '@/format/numbers'
import { useFormat } from '@/format/useFormat'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Checkpoint } from '../../types'

export function useCheckpointActions(jobId: string, onChanged: () => void) {
  const { t } = useI18n()
  const format = useFormat()
  const confirm = useConfirm()
  const toast = useToast()
  const busyStep = ref<number | null>(null)

  async function act(step: number, action: () => Promise<unknown>, done: string): Promise<void> {
    busyStep.value = step
    try {
      await action()
      toast.success(done)
      onChanged()
    } catch (cause) {
      toast.failure(cause)
    } finally {
      busyStep.value = null
    }
  }

  async function keep({ step }: Checkpoint, isKept: boolean): Promise<void> {
    const path = { job_id: jobId, step }
    await act(
      step,
      () =>
        unwrap(api.PATCH('/api/v1/jobs/{job_id}/checkpoints/{step}', { params: { path }, body: { is_kept: isKept } })),
      t(isKept ? 'jobs.keeping.pinned' : 'jobs.keeping.unpinned', { step: formatStep(step) }),
    )
  }

  async function remove({ step, size_bytes: size }: Checkpoint): Promise<void> {
    const isSure = await confirm({
      title: t('jobs.keeping.removeTitle', { step: formatStep(step) }),
      text: t('jobs.keeping.removeText', { size: format.bytes(size) }),
      action: t('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    const path = { job_id: jobId, step }
    await act(
      step,
      () => unwrap(api.DELETE('/api/v1/jobs/{job_id}/checkpoints/{step}', { params: { path } })),
      t('jobs.keeping.removed', { step: formatStep(step) }),
    )
  }

  return { busyStep, keep, remove }
}
