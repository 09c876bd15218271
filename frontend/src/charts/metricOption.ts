/** The ECharts option of a metric chart, from its lines and the reader's choices. */
import type { Palette } from '@/theme/palettes'

import type { ChartOption, SeriesOption } from './echarts'
import { formatElapsedTick, formatStepTick, formatTick, type TimeUnit } from './format'
import type { DrawnLine, XAxis } from './lines'

export interface MetricOptionInput {
  lines: readonly DrawnLine[]
  colors: readonly string[]
  xAxis: XAxis
  timeUnitS: TimeUnit
  /** Common range of linked charts, so that one zoom means the same in all. */
  domain: [number, number] | null
  isLog: boolean
  /** Named at the top of the y axis. */
  unit: string | null
  palette: Palette
  tooltip: (x: number) => HTMLElement | string
}

/** Shared by all charts, because linked charts find each other's zoom by its id. */
const ZOOM_ID = 'zoom-x'

function lineSeries(line: DrawnLine, color: string): SeriesOption[] {
  const shared = { type: 'line', color, symbol: 'none', silent: true, animation: false, connectNulls: false } as const
  const series: SeriesOption[] = []
  if (line.smoothed !== null) {
    series.push({ ...shared, id: `${line.id}:raw`, data: line.raw, z: 2, lineStyle: { width: 1, opacity: 0.28 } })
  }
  series.push({ ...shared, id: `${line.id}:line`, data: line.smoothed ?? line.raw, z: 3, lineStyle: { width: 1.75 } })
  if (line.lonely.length > 0) {
    series.push({
      id: `${line.id}:dots`, type: 'scatter', data: line.lonely, color, symbolSize: 5, silent: true, animation: false, z: 4,
    })
  }
  if (line.broken.length > 0) {
    series.push({
      id: `${line.id}:broken`,
      type: 'scatter',
      yAxisIndex: 1,
      // Marks lie on the edge where the value left the chart: +∞ at the top, the others at the bottom.
      data: line.broken.map(([x, value]) => [x, value === Infinity ? 1 : 0]),
      symbol: 'triangle',
      symbolSize: 9,
      color,
      itemStyle: { borderColor: color, borderWidth: 1 },
      silent: true,
      animation: false,
      z: 5,
    })
  }
  return series
}

export function metricOption(input: MetricOptionInput): ChartOption {
  const { palette, domain, xAxis } = input
  const axisLabel = { color: palette.inkFaint, fontSize: 11, hideOverlap: true }
  const splitLine = { lineStyle: { color: palette.line, width: 1 } }
  return {
    animation: false,
    backgroundColor: 'transparent',
    grid: { left: 4, right: 14, top: input.unit === null ? 10 : 24, bottom: 4, outerBoundsMode: 'same' },
    xAxis: {
      type: 'value',
      min: xAxis === 'time' ? 0 : (domain?.[0] ?? 'dataMin'),
      max: domain === null ? 'dataMax' : domain[1] > domain[0] ? domain[1] : domain[0] + 1,
      minInterval: xAxis === 'step' ? 1 : undefined,
      axisLabel: { ...axisLabel, formatter: xAxis === 'step' ? formatStepTick : (value: number) => formatElapsedTick(value, input.timeUnitS), showMaxLabel: xAxis === 'step' ? undefined : false },
      axisLine: { lineStyle: { color: palette.lineStrong } },
      axisTick: { show: false },
      splitLine: { show: false },
      splitNumber: 5,
    },
    yAxis: [
      {
        type: input.isLog ? 'log' : 'value',
        scale: true,
        name: input.unit ?? undefined,
        nameLocation: 'end',
        nameGap: 8,
        nameTextStyle: { color: palette.inkFaint, fontSize: 11, align: 'left', padding: [0, 0, 0, -24] },
        axisLabel: { ...axisLabel, formatter: formatTick },
        axisLine: { show: false },
        axisTick: { show: false },
        splitLine,
        splitNumber: 4,
      },
      { type: 'value', min: 0, max: 1, show: false },
    ],
    tooltip: {
      trigger: 'axis',
      confine: true,
      transitionDuration: 0,
      // Beside the pointer and at the top: a small chart would vanish behind its own box.
      position: (point, _params, _element, _rectangle, size) => {
        const isLeft = point[0] < size.viewSize[0] / 2
        return [isLeft ? point[0] + 16 : point[0] - size.contentSize[0] - 16, 2]
      },
      backgroundColor: palette.raised,
      borderColor: palette.line,
      padding: [4, 10],
      textStyle: { color: palette.ink, fontSize: 12 },
      axisPointer: { type: 'line', snap: true, lineStyle: { color: palette.inkFaint, type: 'solid', width: 1 } },
      formatter: (params: unknown) => {
        const x = hoveredX(params)
        return x === null ? '' : input.tooltip(x)
      },
    },
    // The wheel scrolls the page; with Ctrl it zooms. Dragging selects a stretch (see MetricChart).
    dataZoom: [
      { id: ZOOM_ID, type: 'inside', filterMode: 'filter', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: 'shift', moveOnMouseWheel: false },
    ],
    toolbox: {
      // Out of sight: it lends its rectangle selection, which MetricChart switches on.
      top: -40,
      itemSize: 0,
      feature: { dataZoom: { yAxisIndex: false, brushStyle: { color: palette.accent, opacity: 0.18 } } },
    },
    series: input.lines.flatMap((line, index) => lineSeries(line, input.colors[index % input.colors.length] ?? palette.accent)),
  }
}

/** x of the hovered points, from whatever ECharts hands to a formatter. */
function hoveredX(params: unknown): number | null {
  const first: unknown = Array.isArray(params) ? params[0] : params
  if (typeof first !== 'object' || first === null || !('value' in first)) return null
  const value: unknown = first.value
  const x: unknown = Array.isArray(value) ? value[0] : null
  return typeof x === 'number' ? x : null
}
