/** What can be done to an evaluation, with the question before it and the notice after it. */
import { useI18n } from 'vue-i18n'
import { useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Evaluation } from '../types'

export function useEvaluationActions(onChanged: () => Promise<void>) {
  const { t } = useI18n()
  const router = useRouter()
  const confirm = useConfirm()
  const toast = useToast()
  const { isBusy, attempt } = useAttempt()

  async function cancel(evaluation: Evaluation): Promise<void> {
    if (
      !(await confirm({
        title: t('evaluations.action.cancelTitle', { name: evaluation.name }),
        text: t('evaluations.action.cancelText'),
        action: t('evaluations.action.cancel'),
      }))
    )
      return
    await attempt(async () => {
      await unwrap(
        api.POST('/api/v1/evaluations/{evaluation_id}/cancel', { params: { path: { evaluation_id: evaluation.id } } }),
      )
      toast.success(t('evaluations.action.cancelled'))
      await onChanged()
    })
  }

  async function retry(evaluation: Evaluation): Promise<void> {
    await attempt(async () => {
      await unwrap(
        api.POST('/api/v1/evaluations/{evaluation_id}/retry', { params: { path: { evaluation_id: evaluation.id } } }),
      )
      toast.success(t('evaluations.action.retried'))
      await onChanged()
    })
  }

  async function remove(evaluation: Evaluation): Promise<void> {
    if (
      !(await confirm({
        title: t('evaluations.action.deleteTitle', { name: evaluation.name }),
        text: t('evaluations.action.deleteText'),
        action: t('action.delete'),
        isDangerous: true,
      }))
    )
      return
    await attempt(async () => {
      await unwrap(
        api.DELETE('/api/v1/evaluations/{evaluation_id}', { params: { path: { evaluation_id: evaluation.id } } }),
      )
      toast.success(t('evaluations.action.deleted', { name: evaluation.name }))
      await router.push({ name: 'evaluations' })
    })
  }

  return { isBusy, cancel, retry, remove }
}
