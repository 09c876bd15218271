/** The parts of ECharts that the dashboard uses; nothing else is bundled. */
import { BarChart, CustomChart, LineChart, RadarChart, ScatterChart } from 'echarts/charts'
import type { BarSeriesOption, CustomSeriesOption, LineSeriesOption, RadarSeriesOption, ScatterSeriesOption } from 'echarts/charts'
import { DataZoomComponent, GridComponent, MarkLineComponent, RadarComponent, ToolboxComponent, TooltipComponent } from 'echarts/components'
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
  BarChart,
  CanvasRenderer,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LineChart,
  MarkLineComponent,
  RadarChart,
  RadarComponent,
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

export type SeriesOption = BarSeriesOption | CustomSeriesOption | LineSeriesOption | RadarSeriesOption | ScatterSeriesOption

export { connect } from 'echarts/core'
