/** The step of a chart that was clicked. */
import { ref, type ShallowRef } from 'vue'
import type VChart from 'vue-echarts'

import { type ChartLine, nearestStep, type XAxis } from './lines'

export function usePinned(
  chart: ShallowRef<InstanceType<typeof VChart> | null>,
  drawn: () => { lines: readonly ChartLine[]; xAxis: XAxis },
) {
  const pinned = ref<number | null>(null)

  /** `event` is the canvas's own: a click beside a line counts as well. */
  function pin(event: { offsetX: number; offsetY: number }): void {
    const place = chart.value?.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY])
    const x = Array.isArray(place) ? Number(place[0]) : NaN
    pinned.value = Number.isFinite(x) ? nearestStep(drawn().lines, drawn().xAxis, x) : null
  }

  return { pinned, pin }
}
