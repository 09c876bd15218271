/** Where what happened stands on a chart's axis, and what is said of it. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { formatStep } from '@/format/numbers'
import type { ChartLine, ChartMark, XAxis } from './lines'

interface Marked {
  marks: readonly ChartMark[]
  lines: readonly ChartLine[]
  xAxis: XAxis
}

export function useMarks(chart: () => Marked, sayPlace: (x: number) => string) {
  const { t } = useI18n()

  /** On other axes a mark stands where its step ended; without a clock it has no place there. */
  const placedMarks = computed(() => {
    const { marks, lines, xAxis } = chart()
    return marks.flatMap((mark) => {
      const line = mark.line === undefined ? lines[0] : lines.find((one) => one.id === mark.line)
      if (mark.line !== undefined && line === undefined) return []
      const clock = xAxis === 'step' ? null : line?.clock
      const hasPlace = clock != null || xAxis === 'step' || xAxis === 'wall'
      return hasPlace ? [{ ...mark, x: clock?.(mark.step) ?? mark.step }] : []
    })
  })

  /** Marks of lines over moments stand at moments, and not at steps. */
  function sayMark(mark: ChartMark): string {
    const { lines, xAxis } = chart()
    const isMoment = xAxis === 'wall' && lines.every((line) => line.clock == null)
    return isMoment
      ? t('charts.markAt', { label: mark.label, place: sayPlace(mark.step) })
      : t('charts.mark', { label: mark.label, step: formatStep(mark.step) })
  }

  const saidMarks = computed(() => placedMarks.value.map((mark) => ({ x: mark.x, label: sayMark(mark) })))

  return { placedMarks, saidMarks, sayMark }
}
