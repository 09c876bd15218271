/** When a queued job starts, in words. */
import { useI18n } from 'vue-i18n'

import { useFormat } from '@/format/useFormat'

import type { QueuedJob } from './order'

export function useStartText() {
  const { t } = useI18n()
  const format = useFormat()

  /** Null for a job that takes no slot. */
  return function startText({ start }: QueuedJob): string | null {
    if (start === null) return null
    if (start.seconds === null)
      return start.unknown === null ? t('jobs.queue.startUnknown') : t('jobs.queue.startAfter', { name: start.unknown })
    return start.seconds === 0
      ? t('jobs.queue.startNow')
      : t('jobs.queue.startIn', { time: format.duration(start.seconds) })
  }
}
