/** Scores as a reader of the current language writes them. */
import { useFormat } from '@/format/useFormat'

import type { Score } from '../types'
import { isShare } from './names'

export function useScore() {
  const format = useFormat()

  /** Shares as percentages with one digit; everything else as a number. */
  function write(metric: string, value: number): string {
    return isShare(metric) && Math.abs(value) <= 1 ? format.percent(value, 1) : format.number(value)
  }

  /** "51.2 % – 65.1 %"; null where no interval was found. */
  function interval(score: Score): string | null {
    if (score.low == null || score.high == null) return null
    return `${write(score.metric, score.low)} – ${write(score.metric, score.high)}`
  }

  return { write, interval }
}
