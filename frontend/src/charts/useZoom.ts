/** What a chart is zoomed to, together with the others of its group. */
import { ref, type ShallowRef } from 'vue'
import type VChart from 'vue-echarts'

import { connect } from './echarts'

interface Given {
  group?: string
  /** What the others of the group are zoomed to. */
  zoomedTo: readonly [number, number] | null
}

type Chart = Pick<InstanceType<typeof VChart>, 'dispatchAction' | 'getOption'>

export function useZoom(
  chart: Readonly<ShallowRef<Chart | null>>,
  given: () => Given,
  tell: (range: [number, number] | null) => void,
) {
  const isZoomed = ref(false)

  /** A chart that is shown later joins the others; they hear nothing of it. */
  function onRendered(): void {
    const { group, zoomedTo } = given()
    if (zoomedTo !== null) {
      const [startValue, endValue] = zoomedTo
      chart.value?.dispatchAction({ type: 'dataZoom', startValue, endValue, escapeConnect: true })
    }
    if (group !== undefined) connect(group)
  }

  function onZoom(): void {
    const zooms: unknown = chart.value?.getOption().dataZoom
    const first: unknown = Array.isArray(zooms) ? zooms[0] : null
    if (typeof first !== 'object' || first === null || !('start' in first) || !('end' in first)) return
    isZoomed.value = Number(first.start) > 0.01 || Number(first.end) < 99.99
    const ends = 'startValue' in first && 'endValue' in first ? [Number(first.startValue), Number(first.endValue)] : []
    const [low, high] = ends
    tell(isZoomed.value && low !== undefined && high !== undefined ? [low, high] : null)
  }

  function resetZoom(): void {
    chart.value?.dispatchAction({ type: 'dataZoom', start: 0, end: 100 })
  }

  return { isZoomed, onRendered, onZoom, resetZoom }
}
