/** What a person can do with a pipeline: start, stop, run a stage again, delete. */
import { useI18n } from 'vue-i18n'
import { useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { JobPipeline, Stage } from '../types'

export function usePipelineActions(show: (changed: JobPipeline) => void) {
  const { t } = useI18n()
  const router = useRouter()
  const toast = useToast()
  const confirm = useConfirm()
  const { isBusy, attempt } = useAttempt()

  function start({ id }: JobPipeline): Promise<void> {
    return attempt(async () => {
      show(
        await unwrap(
          api.POST('/api/v1/job-pipelines/{job_pipeline_id}/start', { params: { path: { job_pipeline_id: id } } }),
        ),
      )
      toast.success(t('jobPipelines.started'))
    })
  }

  async function stop({ id, name }: JobPipeline): Promise<void> {
    const isSure = await confirm({
      title: t('jobPipelines.stopTitle', { name }),
      text: t('jobPipelines.stopText'),
      action: t('jobPipelines.stop'),
    })
    if (!isSure) return
    await attempt(async () => {
      show(
        await unwrap(
          api.POST('/api/v1/job-pipelines/{job_pipeline_id}/stop', { params: { path: { job_pipeline_id: id } } }),
        ),
      )
    })
  }

  async function rerun({ id }: JobPipeline, stage: Stage): Promise<void> {
    const isSure = await confirm({
      title: t('jobPipelines.rerunTitle', { name: stage.title }),
      text: t('jobPipelines.rerunText'),
      action: t('jobPipelines.rerun'),
    })
    if (!isSure) return
    await attempt(async () => {
      show(
        await unwrap(
          api.POST('/api/v1/job-pipelines/{job_pipeline_id}/stages/{stage_id}/rerun', {
            params: { path: { job_pipeline_id: id, stage_id: stage.id } },
          }),
        ),
      )
      toast.success(t('jobPipelines.rerunDone', { name: stage.title }))
    })
  }

  async function remove({ id, name }: JobPipeline): Promise<void> {
    const isSure = await confirm({
      title: t('jobPipelines.remove.title', { name }),
      text: t('jobPipelines.remove.text'),
      action: t('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await attempt(async () => {
      await unwrap(api.DELETE('/api/v1/job-pipelines/{job_pipeline_id}', { params: { path: { job_pipeline_id: id } } }))
      toast.success(t('jobPipelines.remove.done', { name }))
      await router.push({ name: 'job-pipelines' })
    })
  }

  return { isBusy, start, stop, rerun, remove }
}
