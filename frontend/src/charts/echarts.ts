/** The parts of ECharts that curves need; those of other charts are in `moreCharts.ts`. Nothing else is bundled. */
import { LineChart, ScatterChart } from 'echarts/charts'
import type {
  BarSeriesOption,
  CustomSeriesOption,
  LineSeriesOption,
  RadarSeriesOption,
  ScatterSeriesOption,
} from 'echarts/charts'
import {
  DataZoomInsideComponent,
  GridComponent,
  MarkLineComponent,
  ToolboxComponent,
  TooltipComponent,
} from 'echarts/components'
import type {
  DataZoomComponentOption,
  GridComponentOption,
  MarkLineComponentOption,
  RadarComponentOption,
  ToolboxComponentOption,
  TooltipComponentOption,
} from 'echarts/components'
import { use } from 'echarts/core'
import type { ComposeOption } from 'echarts/core'
import { CanvasRenderer } from 'echarts/renderers'

use([
  CanvasRenderer,
  DataZoomInsideComponent,
  GridComponent,
  LineChart,
  MarkLineComponent,
  ScatterChart,
  ToolboxComponent,
  TooltipComponent,
])

export type ChartOption = ComposeOption<
  | BarSeriesOption
  | CustomSeriesOption
  | DataZoomComponentOption
  | GridComponentOption
  | LineSeriesOption
  | MarkLineComponentOption
  | RadarComponentOption
  | RadarSeriesOption
  | ScatterSeriesOption
  | ToolboxComponentOption
  | TooltipComponentOption
>

export type SeriesOption =
  BarSeriesOption | CustomSeriesOption | LineSeriesOption | RadarSeriesOption | ScatterSeriesOption

export { connect } from 'echarts/core'
