/** The platform's state: read once for the whole shell, shown in the top bar and on the overview. */
import { inject, type InjectionKey, provide } from 'vue'

import { api, unwrap } from '@/api/client'
import type { components } from '@/api/schema'
import { type Resource, useResource } from '@/api/useResource'

export type Dashboard = components['schemas']['DashboardRead']
export type Health = Dashboard['health']

const KEY: InjectionKey<Resource<Dashboard>> = Symbol('platform')
const INTERVAL_MS = 3000

export function providePlatform(): Resource<Dashboard> {
  const resource = useResource((signal) => unwrap(api.GET('/api/v1/monitoring/dashboard', { signal })), {
    intervalMs: INTERVAL_MS,
  })
  provide(KEY, resource)
  return resource
}

export function usePlatform(): Resource<Dashboard> {
  const resource = inject(KEY)
  if (resource === undefined) throw new Error('usePlatform is for components inside the shell')
  return resource
}
