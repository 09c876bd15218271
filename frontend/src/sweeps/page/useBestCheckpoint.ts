/** What can be made of the best run's checkpoint: an evaluation or an export of the step with the best value. */
import { useI18n } from 'vue-i18n'
import { useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'
import { useToast } from '@/ui/useToast'

import type { Sweep } from '../types'

export function useBestCheckpoint() {
  const { t } = useI18n()
  const router = useRouter()
  const toast = useToast()
  const { isBusy, attempt } = useAttempt()

  /** The checkpoint with the best value of the sweep's metric, else the newest; null where none is kept. */
  async function find(jobId: string, { objective }: Sweep): Promise<number | null> {
    const query = { best_by: objective.metric ?? undefined, mode: objective.mode ?? undefined }
    const page = await unwrap(
      api.GET('/api/v1/jobs/{job_id}/checkpoints', { params: { path: { job_id: jobId }, query } }),
    )
    return page.best?.step ?? page.items.find((one) => one.can_export)?.step ?? null
  }

  function withStep(jobId: string, sweep: Sweep, go: (step: number) => Promise<unknown>): Promise<void> {
    return attempt(async () => {
      const step = await find(jobId, sweep)
      if (step === null) toast.problem(t('sweeps.bestCard.noCheckpoint'))
      else await go(step)
    })
  }

  function evaluate(jobId: string, sweep: Sweep): Promise<void> {
    return withStep(jobId, sweep, (step) =>
      router.push({ name: 'evaluation-new', query: { job: jobId, step: String(step) } }),
    )
  }

  /** The dialog that asks for the model's name and form is that of the job's checkpoints. */
  function exportIt(jobId: string, sweep: Sweep): Promise<void> {
    return withStep(jobId, sweep, (step) =>
      router.push({ name: 'job', params: { id: jobId }, query: { tab: 'checkpoints', export: String(step) } }),
    )
  }

  return { isBusy, evaluate, exportIt }
}
