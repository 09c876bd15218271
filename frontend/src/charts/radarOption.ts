/** The ECharts option of a radar: one closed shape for each model over axes from 0 to 1. */
import type { Palette } from '@/theme/palettes'

import type { ChartOption } from './echarts'
import type { RadarShape } from './scores'
import { scoreTooltip } from './scoreTooltip'

export interface RadarOptionInput {
  axes: readonly string[]
  /** With values for these axes only; a hidden shape is left out, and its colour stays its own. */
  shapes: readonly (RadarShape & { color: string })[]
  palette: Palette
  format: (value: number) => string
}

/** Dashes tell shapes apart where colours do not. */
const DASHES = ['solid', 'dashed', 'dotted'] as const

export function radarOption({ axes, shapes, palette, format }: RadarOptionInput): ChartOption {
  return {
    animation: false,
    backgroundColor: 'transparent',
    tooltip: {
      trigger: 'item',
      confine: true,
      transitionDuration: 0,
      backgroundColor: palette.raised,
      borderColor: palette.line,
      padding: [4, 10],
      textStyle: { color: palette.ink, fontSize: 12 },
      formatter: (params: unknown) => {
        const shape = shapes[hoveredIndex(params)]
        if (shape === undefined) return ''
        const rows = axes.map((name, index) => ({ name, value: format(shape.values[index] ?? NaN), detail: '' }))
        return scoreTooltip(shape.label, rows)
      },
    },
    radar: {
      indicator: axes.map((name) => ({ name, min: 0, max: 1 })),
      // A triangle stands on its base: its middle is below that of the chart.
      center: ['50%', axes.length === 3 ? '60%' : '52%'],
      radius: axes.length === 3 ? '70%' : '66%',
      axisNameGap: 8,
      splitNumber: 4,
      axisName: { color: palette.inkMuted, fontSize: 12 },
      axisLine: { lineStyle: { color: palette.line } },
      splitLine: { lineStyle: { color: palette.line } },
      splitArea: { show: false },
    },
    series: [
      {
        type: 'radar',
        symbolSize: 5,
        data: shapes.map((shape, index) => ({
          name: shape.label,
          value: shape.values.map((value) => value ?? NaN),
          itemStyle: { color: shape.color },
          lineStyle: { color: shape.color, width: 2, type: DASHES[Math.floor(index / 4) % DASHES.length] },
          areaStyle: { color: shape.color, opacity: shapes.length > 3 ? 0.03 : 0.1 },
        })),
      },
    ],
  }
}

/** Place of the hovered shape, from whatever ECharts hands to a formatter. */
function hoveredIndex(params: unknown): number {
  return typeof params === 'object' && params !== null && 'dataIndex' in params ? Number(params.dataIndex) : -1
}
