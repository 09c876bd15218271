/** `?job=...` in the address names a job: its base model and its newest checkpoint that is still there are meant. */
import { onMounted } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'
import { useToast } from '@/ui/useToast'

const LOOKED_AT = 50

/** `choose` gets them in this order; the checkpoint alone where the base model was deleted. */
export function useJobCheckpoint(choose: (names: string[]) => void): void {
  const route = useRoute()
  const { t } = useI18n()
  const { attempt } = useAttempt()
  const toast = useToast()
  onMounted(() => {
    const asked = route.query.job
    if (typeof asked !== 'string') return
    void attempt(async () => {
      const path = { job_id: asked }
      const [job, page] = await Promise.all([
        unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path } })),
        unwrap(api.GET('/api/v1/jobs/{job_id}/checkpoints', { params: { path, query: { limit: LOOKED_AT } } })),
      ])
      const newest = page.items.filter((each) => !each.is_pruned).sort((one, other) => other.step - one.step)[0]
      if (newest === undefined) toast.problem(t('playground.noCheckpoint'))
      else choose([...(job.model.name === null ? [] : [job.model.name]), `${job.id}:${String(newest.step)}`])
    })
  })
}
