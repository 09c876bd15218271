/** Differences of scores as a reader writes them. */
import { useI18n } from 'vue-i18n'

import { useFormat } from '@/format/useFormat'
import { formatFixed } from '@/format/numbers'

import { isShare } from '../shared/names'
import type { ComparedBenchmark } from './outcome'

export function useDifference() {
  const { t } = useI18n()
  const format = useFormat()

  /** With its sign; of shares in points, because a percentage of a percentage misleads. */
  function signed(compared: ComparedBenchmark, value: number): string {
    const sign = value > 0 ? '+' : value < 0 ? '−' : '±'
    const size = Math.abs(value)
    const usesShares = isShare(compared.metric) && Math.abs(compared.difference) <= 1
    return usesShares
      ? t('evaluations.compare.points', { n: `${sign}${formatFixed(size * 100, 1)}` })
      : `${sign}${format.number(size)}`
  }

  return { signed }
}
