/** The ECharts option of a history: scores with their intervals over steps, or over versions in order. */
import type { Palette } from '@/theme/palettes'

import type { ChartOption, SeriesOption } from './echarts'
import { formatStepTick } from '@/format/numbers'
import { scoreAxis, type ScoreLine, type ScorePoint, valueRange } from './scores'

export interface HistoryOptionInput {
  lines: readonly (ScoreLine & { color: string })[]
  /** Steps on a measured axis, or places named by their labels. */
  axis: 'step' | 'order'
  /** Names of the places, where the axis is one of order. */
  places: readonly string[]
  /** What the axes count and measure. */
  titles: { x: string; y: string }
  palette: Palette
  format: (value: number) => string
  tooltip: (x: number) => HTMLElement | string
}

/** Half the width of the caps of an interval, in pixels. */
const CAP_PX = 4

function intervalSeries({ id, points, color }: HistoryOptionInput['lines'][number]): SeriesOption[] {
  const bounded = points.filter((point) => point.low !== null && point.high !== null)
  if (bounded.length === 0) return []
  return [
    {
      id: `${id}:interval`,
      type: 'custom',
      silent: true,
      animation: false,
      z: 2,
      data: bounded.map((point) => [point.x, point.low ?? point.value, point.high ?? point.value]),
      encode: { x: 0, y: [1, 2] },
      renderItem: (_params, api) => {
        const [x = 0, bottom = 0] = api.coord([api.value(0), api.value(1)])
        const [, top = 0] = api.coord([api.value(0), api.value(2)])
        const path = `M${x - CAP_PX} ${top}H${x + CAP_PX}M${x} ${top}V${bottom}M${x - CAP_PX} ${bottom}H${x + CAP_PX}`
        return {
          type: 'path',
          shape: { pathData: path },
          style: { stroke: color, fill: 'none', lineWidth: 1.25, opacity: 0.75 },
        }
      },
    },
  ]
}

function lineSeries(line: HistoryOptionInput['lines'][number]): SeriesOption[] {
  const data = line.points.map((point: ScorePoint) => [point.x, point.value])
  return [
    ...intervalSeries(line),
    // The curve may be stepped over a gap of versions that were not measured; its points say which were.
    {
      id: `${line.id}:line`,
      type: 'line',
      data,
      color: line.color,
      symbol: 'circle',
      symbolSize: 8,
      animation: false,
      z: 3,
      lineStyle: { width: 1.75 },
      cursor: 'pointer',
    },
  ]
}

export function historyOption(input: HistoryOptionInput): ChartOption {
  const { palette } = input
  const nameTextStyle = { color: palette.inkFaint, fontSize: 11 }
  const axisLabel = { color: palette.inkFaint, fontSize: 11, hideOverlap: true }
  const [min, max] = scoreAxis(valueRange(input.lines))
  const xs = input.lines.flatMap((line) => line.points.map((point) => point.x))
  const isOrder = input.axis === 'order'
  // A whole place on either side keeps the ticks of an axis of order on its places.
  const air = isOrder ? 1 : Math.max((Math.max(...xs) - Math.min(...xs)) * 0.04, 0.5)
  return {
    animation: false,
    backgroundColor: 'transparent',
    grid: { left: 4, right: 14, top: 24, bottom: 4, outerBoundsMode: 'same' },
    xAxis: {
      type: 'value',
      min: Math.min(...xs) - air,
      max: Math.max(...xs) + air,
      interval: isOrder ? 1 : undefined,
      minInterval: 1,
      axisLabel: {
        ...axisLabel,
        width: 120,
        overflow: 'truncate',
        showMinLabel: isOrder ? undefined : false,
        showMaxLabel: isOrder ? undefined : false,
        formatter: (value: number) =>
          isOrder
            ? Number.isInteger(value)
              ? (input.places[value] ?? '')
              : ''
            : Number.isInteger(value)
              ? formatStepTick(value)
              : '',
      },
      axisLine: { lineStyle: { color: palette.lineStrong } },
      axisTick: { show: false },
      splitLine: { show: false },
      name: input.titles.x,
      nameLocation: 'middle',
      nameGap: 22,
      nameTextStyle,
    },
    yAxis: {
      type: 'value',
      min,
      max,
      name: input.titles.y,
      nameLocation: 'end',
      nameGap: 8,
      nameTextStyle: { ...nameTextStyle, align: 'left', padding: [0, 0, 0, -24] },
      axisLabel: { ...axisLabel, formatter: input.format },
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: palette.line, width: 1 } },
      splitNumber: 4,
    },
    tooltip: {
      trigger: 'axis',
      confine: true,
      transitionDuration: 0,
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
    series: input.lines.flatMap(lineSeries),
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
