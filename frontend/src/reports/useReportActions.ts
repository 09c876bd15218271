/** Deleting reports, with the question before and the notice after, and writing them again. */
import { ref } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Report } from './types'

export function useReportActions(onRemoved: () => Promise<unknown>, onChanged: () => Promise<unknown> = onRemoved) {
  const { t } = useI18n()
  const confirm = useConfirm()
  const toast = useToast()
  const busyId = ref<string | null>(null)

  async function remove(report: Report): Promise<void> {
    const isSure = await confirm({
      title: t('reports.remove.title', { name: report.name }),
      text: t('reports.remove.text'),
      action: t('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await act(report, async () => {
      await unwrap(api.DELETE('/api/v1/reports/{report_id}', { params: { path: { report_id: report.id } } }))
      toast.success(t('reports.remove.done', { name: report.name }))
      await onRemoved()
    })
  }

  async function retry(report: Report): Promise<void> {
    await act(report, async () => {
      await unwrap(api.POST('/api/v1/reports/{report_id}/retry', { params: { path: { report_id: report.id } } }))
      await onChanged()
    })
  }

  async function act(report: Report, action: () => Promise<void>): Promise<void> {
    busyId.value = report.id
    try {
      await action()
    } catch (cause) {
      toast.failure(cause)
    } finally {
      busyId.value = null
    }
  }

  return { busyId, remove, retry }
}
