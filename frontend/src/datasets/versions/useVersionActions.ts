/** What can be taken away: names and versions, each with the question before it and the notice after it. */
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { useFormat } from '@/format/useFormat'
import { useAttempt } from '@/ui/useAttempt'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Version } from './types'

export function useVersionActions(datasetId: () => string, onChanged: () => Promise<void>) {
  const { t } = useI18n()
  const format = useFormat()
  const confirm = useConfirm()
  const toast = useToast()
  const { isBusy, attempt } = useAttempt()

  async function removeName(kind: 'branch' | 'tag', name: string): Promise<void> {
    const title = t(kind === 'branch' ? 'datasets.versions.names.removeBranch' : 'datasets.versions.names.removeTag', {
      name,
    })
    const text = t(
      kind === 'branch' ? 'datasets.versions.names.removeBranchText' : 'datasets.versions.names.removeTagText',
    )
    if (!(await confirm({ title, text, action: t('action.delete'), isDangerous: true }))) return
    await attempt(async () => {
      const params = { path: { dataset_id: datasetId(), name } }
      if (kind === 'branch') await unwrap(api.DELETE('/api/v1/datasets/{dataset_id}/branches/{name}', { params }))
      else await unwrap(api.DELETE('/api/v1/datasets/{dataset_id}/tags/{name}', { params }))
      toast.success(t('datasets.versions.names.removed', { name }))
      await onChanged()
    })
  }

  async function removeVersion(version: Version): Promise<void> {
    const n = format.integer(version.number)
    const isSure = await confirm({
      title: t('datasets.versions.remove.title', { n }),
      text: t('datasets.versions.remove.text'),
      action: t('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await attempt(async () => {
      await unwrap(
        api.DELETE('/api/v1/datasets/{dataset_id}/versions/{version_id}', {
          params: { path: { dataset_id: datasetId(), version_id: version.id } },
        }),
      )
      toast.success(t('datasets.versions.remove.done', { n }))
      await onChanged()
    })
  }

  return { isBusy, removeName, removeVersion }
}
