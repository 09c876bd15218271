/** `?job=...` in the address names a job: its newest checkpoint that is still there is meant. */
import { onMounted } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'
import { useToast } from '@/ui/useToast'

const LOOKED_AT = 50

export function useJobCheckpoint(choose: (name: string) => void): void {
  const route = useRoute()
  const { t } = useI18n()
  const { attempt } = useAttempt()
  const toast = useToast()
  onMounted(() => {
    const id = route.query.job
    if (typeof id !== 'string') return
    void attempt(async () => {
      const page = await unwrap(
        api.GET('/api/v1/jobs/{job_id}/checkpoints', { params: { path: { job_id: id }, query: { limit: LOOKED_AT } } }),
      )
      const newest = page.items.filter((each) => !each.is_pruned).sort((one, other) => other.step - one.step)[0]
      if (newest === undefined) toast.problem(t('playground.noCheckpoint'))
      else choose(`${id}:${String(newest.step)}`)
    })
  })
}
