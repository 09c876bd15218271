/** What a person can do with a sweep: stop, resume, delete, export its best run. */
import { useI18n } from 'vue-i18n'
import { useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'
import { useConfirm } from '@/ui/useConfirm'
import { useToast } from '@/ui/useToast'

import type { Sweep } from '../types'

export function useSweepActions(show: (changed: Sweep) => void) {
  const { t } = useI18n()
  const router = useRouter()
  const toast = useToast()
  const confirm = useConfirm()
  const { isBusy, attempt } = useAttempt()

  async function stop({ id, name }: Sweep): Promise<void> {
    const isSure = await confirm({
      title: t('sweeps.stopTitle', { name }),
      text: t('sweeps.stopText'),
      action: t('sweeps.stop'),
    })
    if (!isSure) return
    await attempt(async () => {
      show(await unwrap(api.POST('/api/v1/sweeps/{sweep_id}/stop', { params: { path: { sweep_id: id } } })))
    })
  }

  function resume({ id }: Sweep): Promise<void> {
    return attempt(async () => {
      show(await unwrap(api.POST('/api/v1/sweeps/{sweep_id}/resume', { params: { path: { sweep_id: id } } })))
      toast.success(t('sweeps.resumed'))
    })
  }

  async function remove({ id, name }: Sweep): Promise<void> {
    const isSure = await confirm({
      title: t('sweeps.remove.title', { name }),
      text: t('sweeps.remove.text'),
      action: t('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await attempt(async () => {
      await unwrap(api.DELETE('/api/v1/sweeps/{sweep_id}', { params: { path: { sweep_id: id } } }))
      toast.success(t('sweeps.remove.done', { name }))
      await router.push({ name: 'sweeps' })
    })
  }

  return { isBusy, stop, resume, remove }
}
