/** `?job=...` in the address names a job: its newest checkpoint that is still there is meant. */
import { onMounted } from 'vue'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useAttempt } from '@/ui/useAttempt'

const LOOKED_AT = 50

export function useJobCheckpoint(choose: (name: string) => void): void {
  const route = useRoute()
  const { attempt } = useAttempt()
  onMounted(() => {
    const id = route.query.job
    if (typeof id !== 'string') return
    void attempt(async () => {
      const page = await unwrap(api.GET('/api/v1/jobs/{job_id}/checkpoints', { params: { path: { job_id: id }, query: { limit: LOOKED_AT } } }))
      const newest = page.items.filter((each) => !each.is_pruned).sort((one, other) => other.step - one.step)[0]
      if (newest !== undefined) choose(`${id}:${String(newest.step)}`)
    })
  })
}
