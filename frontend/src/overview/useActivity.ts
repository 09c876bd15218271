/** Latest results and active alarms. */
import { api, unwrap } from '@/api/client'
import type { components } from '@/api/schema'
import { useResource } from '@/api/useResource'

export type Activity = components['schemas']['ActivityRead']

const INTERVAL_MS = 15_000

export function useActivity() {
  return useResource((signal) => unwrap(api.GET('/api/v1/monitoring/activity', { signal })), {
    intervalMs: INTERVAL_MS,
  })
}
