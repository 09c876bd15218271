/** How long an endpoint has been waiting for its place or loading its model, told anew every second. */
import { useTimestamp } from '@vueuse/core'
import { useI18n } from 'vue-i18n'

import { useFormat } from '@/format/useFormat'

import type { Endpoint } from './types'

export function useLoadingText(): (endpoint: Endpoint) => string {
  const { t } = useI18n()
  const format = useFormat()
  const now = useTimestamp({ interval: 1000 })
  return ({ phase, state_since: since }) => {
    const elapsed = Math.max(0, Math.round((now.value - Date.parse(since)) / 1000))
    return t(phase === null ? 'playground.status.queued' : 'playground.status.loading', {
      time: format.duration(elapsed),
    })
  }
}
