/** The ECharts option of a metric chart, from its lines and the reader's choices. */
import type { Palette } from '@/theme/palettes'

import type { ChartOption, SeriesOption } from './echarts'
import { formatElapsedTick, formatMoment, formatStepTick, formatTick, roundTo, type TimeUnit } from '@/format/numbers'
import { type ChartMark, type DrawnLine, joinMarks, type XAxis } from './lines'

export interface MetricOptionInput {
  lines: readonly DrawnLine[]
  colors: readonly string[]
  xAxis: XAxis
  timeUnitS: TimeUnit
  /** Common range of linked charts, so that one zoom means the same in all. */
  domain: [number, number] | null
  isLog: boolean
  /** Ends of the y axis that the reader has set; null leaves one to the values. */
  yRange?: readonly [number | null, number | null]
  /** Named at the top of the y axis. */
  unit: string | null
  /** What the x axis counts, and in which unit. */
  xTitle: string
  palette: Palette
  /** With their place on the x axis. */
  marks: readonly (ChartMark & { x: number })[]
  tooltip: (x: number) => HTMLElement | string
}

/** Shared by all charts, because linked charts find each other's zoom by its id. */
const ZOOM_ID = 'zoom-x'

/** A soft stretch between two lines of which nothing else is seen: the upper one stands on the lower one. */
function bandSeries(line: DrawnLine, color: string): SeriesOption[] {
  if (line.band === undefined || line.raw.length === 0) return []
  const shared = {
    type: 'line',
    stack: `${line.id}:band`,
    stackStrategy: 'all',
    symbol: 'none',
    silent: true,
    animation: false,
    lineStyle: { opacity: 0 },
    color,
    z: 1,
  } as const
  return [
    { ...shared, id: `${line.id}:low`, data: line.band.map(([x, low]) => [x, low]) },
    {
      ...shared,
      id: `${line.id}:high`,
      data: line.band.map(([x, low, high]) => [x, high - low]),
      areaStyle: { color, opacity: 0.16 },
    },
  ]
}

function lineSeries(line: DrawnLine, color: string): SeriesOption[] {
  const dash = line.look?.dash ?? 'solid'
  const shared = { type: 'line', color, symbol: 'none', silent: true, animation: false, connectNulls: false } as const
  const series: SeriesOption[] = bandSeries(line, color)
  if (line.smoothed !== null) {
    series.push({ ...shared, id: `${line.id}:raw`, data: line.raw, z: 2, lineStyle: { width: 1, opacity: 0.28 } })
  }
  series.push({
    ...shared,
    id: `${line.id}:line`,
    data: line.smoothed ?? line.raw,
    z: 3,
    lineStyle: { width: 1.75, type: dash },
  })
  if (line.lonely.length > 0) {
    series.push({
      id: `${line.id}:dots`,
      type: 'scatter',
      data: line.lonely,
      color,
      symbolSize: 5,
      silent: true,
      animation: false,
      z: 4,
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

/** A series of its own, so that hiding a curve does not hide what happened. */
function markSeries({ marks, palette }: MetricOptionInput): SeriesOption[] {
  if (marks.length === 0) return []
  return [
    {
      id: 'marks',
      type: 'line',
      data: [],
      silent: true,
      animation: false,
      markLine: {
        symbol: ['none', 'triangle'],
        symbolSize: 7,
        silent: true,
        animation: false,
        data: joinMarks(marks).map((mark) => {
          const color =
            mark.color ??
            (mark.isPlain === true ? palette.inkFaint : mark.isCritical ? palette.failed : palette.stopping)
          // Along its line and beneath the edge: beside it, a label would cover the curve, and above it the unit.
          const label = {
            show: true,
            formatter: () => mark.label,
            position: 'insideEndTop',
            color,
            fontSize: 10,
            distance: 3,
            width: 110,
            overflow: 'truncate',
          } as const
          return {
            name: mark.label,
            xAxis: mark.x,
            itemStyle: { color },
            lineStyle: { color, width: 1.25, type: 'dashed' },
            label,
          }
        }),
      },
    },
  ]
}

/**
 * Ends of the y axis for values that are all alike: a curve that stands still is drawn in the middle, and not as the
 * rounding noise of its smoothing stretched over the whole chart. Null leaves the ends to ECharts.
 */
export function endsOfFlat({ min, max }: { min: number; max: number }): [number, number] | null {
  const size = Math.max(Math.abs(min), Math.abs(max))
  if (!Number.isFinite(size) || max - min > size * 1e-6) return null
  const margin = size === 0 ? 1 : size * 0.1
  // The ends are labelled: 3.3 and not 3.317747839.
  const unit = 10 ** Math.floor(Math.log10(margin))
  const inUnits = (value: number) => roundTo(value / unit, 9)
  const tidy = (value: number) => roundTo(value * unit, 12)
  return [tidy(Math.floor(inUnits(min - margin))), tidy(Math.ceil(inUnits(max + margin)))]
}

function xTick(value: number, { xAxis, timeUnitS, domain }: MetricOptionInput): string {
  if (xAxis === 'step') return formatStepTick(value)
  if (xAxis === 'tokens') return formatTick(value)
  return xAxis === 'wall'
    ? formatMoment(value, domain === null ? undefined : domain[1] - domain[0])
    : formatElapsedTick(value, timeUnitS)
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
      min: xAxis === 'time' || xAxis === 'tokens' ? 0 : (domain?.[0] ?? 'dataMin'),
      max: domain === null ? 'dataMax' : domain[1] > domain[0] ? domain[1] : domain[0] + 1,
      minInterval: xAxis === 'step' ? 1 : undefined,
      axisLabel: {
        ...axisLabel,
        formatter: (value: number) => xTick(value, input),
        showMaxLabel: xAxis === 'step' ? undefined : false,
      },
      axisLine: { lineStyle: { color: palette.lineStrong } },
      axisTick: { show: false },
      splitLine: { show: false },
      splitNumber: 5,
      name: input.xTitle,
      nameLocation: 'middle',
      nameGap: 22,
      nameTextStyle: { color: palette.inkFaint, fontSize: 11 },
    },
    yAxis: [
      {
        type: input.isLog ? 'log' : 'value',
        scale: true,
        min: input.yRange?.[0] ?? ((extent: { min: number; max: number }) => endsOfFlat(extent)?.[0] ?? null),
        max: input.yRange?.[1] ?? ((extent: { min: number; max: number }) => endsOfFlat(extent)?.[1] ?? null),
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
      {
        id: ZOOM_ID,
        type: 'inside',
        filterMode: 'filter',
        zoomOnMouseWheel: 'ctrl',
        moveOnMouseMove: 'shift',
        moveOnMouseWheel: false,
        // Else ECharts keeps a finger from scrolling the page, whether it moves anything or not.
        preventDefaultMouseMove: false,
      },
    ],
    toolbox: {
      // Out of sight: it lends its rectangle selection, which MetricChart switches on.
      top: -40,
      itemSize: 0,
      feature: { dataZoom: { yAxisIndex: false, brushStyle: { color: palette.accent, opacity: 0.18 } } },
    },
    series: [
      ...input.lines.flatMap((line, index) =>
        lineSeries(line, line.look?.color ?? input.colors[index % input.colors.length] ?? palette.accent),
      ),
      ...markSeries(input),
    ],
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
