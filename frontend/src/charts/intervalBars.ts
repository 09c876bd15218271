/** Bars with the interval in which the true value is likely to lie, one row a name, one bar a series. */
import type { CustomSeriesOption } from 'echarts/charts'

import type { Palette } from '@/theme/palettes'

import type { ChartOption, SeriesOption } from './echarts'

export interface IntervalBar {
  value: number
  /** The interval's ends; null where none was found. */
  low: number | null
  high: number | null
}

export interface BarSeries {
  name: string
  /** In the order of the names; null where a series lacks one. */
  bars: readonly (IntervalBar | null)[]
}

export interface IntervalBars {
  names: readonly string[]
  series: readonly BarSeries[]
  /** How a value is written on the axis and beside its bar. */
  write: (value: number) => string
}

const ROW_GAP_PX = 10
const BAR_PX = 14
const AXIS_PX = 36
/** Longer names are cut on the axis; the tooltip has them whole. */
const NAME_PX = 150
const NARROW_NAME_PX = 96

/** Tall enough that each bar can be read. */
export function barsHeight(rows: number, series: number): number {
  return AXIS_PX + rows * (ROW_GAP_PX + Math.max(1, series) * BAR_PX)
}

/** Shares are drawn up to one, so that two charts can be compared by eye; anything else as far as it goes. */
export function axisEnds(series: readonly BarSeries[]): { min: number | undefined; max: number | undefined } {
  const values = series.flatMap((one) =>
    one.bars.flatMap((bar) => (bar === null ? [] : [bar.value, bar.low ?? bar.value, bar.high ?? bar.value])),
  )
  const isShare = values.every((value) => value >= 0 && value <= 1)
  return isShare ? { min: 0, max: 1 } : { min: undefined, max: undefined }
}

/** "58.3 % (51.2 % – 65.1 %)". */
export function sayBar(bar: IntervalBar, write: (value: number) => string): string {
  return bar.low === null || bar.high === null
    ? write(bar.value)
    : `${write(bar.value)} (${write(bar.low)} – ${write(bar.high)})`
}

/** Draws a whisker over the bar of the same row and series; a row is [index, low, high]. */
function whisker(color: string, at: number, count: number): NonNullable<CustomSeriesOption['renderItem']> {
  return (_, api) => {
    const row = api.value(0)
    const [left = 0, middle = 0] = api.coord([api.value(1), row])
    const [right = 0] = api.coord([api.value(2), row])
    const layout = api.barLayout({ count, barGap: '10%', barCategoryGap: '30%' })?.[at]
    const y = middle + (layout?.offsetCenter ?? 0)
    const cap = Math.min(4, (layout?.width ?? BAR_PX) / 3)
    const line = (x1: number, y1: number, x2: number, y2: number) => ({
      type: 'line' as const,
      shape: { x1, y1, x2, y2 },
      style: { stroke: color, lineWidth: 1.5 },
    })
    return {
      type: 'group',
      children: [line(left, y, right, y), line(left, y - cap, left, y + cap), line(right, y - cap, right, y + cap)],
    }
  }
}

/** The rows that have an interval, as the whiskers need them. */
export function whiskerRows(bars: readonly (IntervalBar | null)[]): [number, number, number][] {
  return bars.flatMap((bar, index): [number, number, number][] =>
    bar === null || bar.low === null || bar.high === null ? [] : [[index, bar.low, bar.high]],
  )
}

function seriesOf(data: IntervalBars, palette: Palette): SeriesOption[] {
  return data.series.flatMap((one, index): SeriesOption[] => {
    const color = palette.series[index % palette.series.length]
    return [
      {
        type: 'bar',
        name: one.name,
        data: one.bars.map((bar) => bar?.value ?? null),
        itemStyle: { color, opacity: 0.75, borderRadius: [0, 2, 2, 0] },
        barGap: '10%',
        barCategoryGap: '30%',
      },
      {
        type: 'custom',
        name: one.name,
        data: whiskerRows(one.bars),
        encode: { x: [1, 2], y: 0 },
        renderItem: whisker(palette.ink, index, data.series.length),
        silent: true,
        z: 10,
      },
    ]
  })
}

function tooltipText(data: IntervalBars, row: number): HTMLElement {
  const root = document.createElement('div')
  root.className = 'chart-tooltip'
  const heading = document.createElement('div')
  heading.className = 'chart-tooltip-heading'
  heading.textContent = data.names[row] ?? ''
  root.append(heading)
  for (const one of data.series) {
    const bar = one.bars[row] ?? null
    const line = document.createElement('div')
    line.className = 'chart-tooltip-row'
    line.textContent = [data.series.length > 1 ? one.name : '', bar === null ? '–' : sayBar(bar, data.write)]
      .filter((part) => part !== '')
      .join(' · ')
    root.append(line)
  }
  return root
}

/** First names at the top, as one reads. */
export function intervalOption(data: IntervalBars, palette: Palette, isNarrow: boolean): ChartOption {
  const axisLabel = { color: palette.inkFaint, fontSize: 11, hideOverlap: true }
  return {
    animation: false,
    grid: { left: 4, right: 24, top: 4, bottom: 4, outerBoundsMode: 'same' },
    tooltip: {
      trigger: 'axis',
      confine: true,
      backgroundColor: palette.raised,
      borderColor: palette.line,
      textStyle: { color: palette.ink, fontSize: 12 },
      axisPointer: { type: 'shadow', shadowStyle: { color: palette.ink, opacity: 0.06 } },
      formatter: (params) => tooltipText(data, [params].flat()[0]?.dataIndex ?? 0),
    },
    xAxis: {
      type: 'value',
      ...axisEnds(data.series),
      splitNumber: isNarrow ? 2 : 5,
      axisLabel: { ...axisLabel, formatter: data.write },
      splitLine: { lineStyle: { color: palette.line } },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: [...data.names],
      axisLabel: {
        color: palette.inkMuted,
        fontSize: 12,
        interval: 0,
        width: isNarrow ? NARROW_NAME_PX : NAME_PX,
        overflow: 'truncate',
      },
      axisTick: { show: false },
      axisLine: { lineStyle: { color: palette.lineStrong } },
    },
    series: seriesOf(data, palette),
  }
}
