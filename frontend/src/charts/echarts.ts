/** The parts of ECharts that the dashboard uses; nothing else is bundled. */
import { BarChart, LineChart, ScatterChart } from 'echarts/charts'
import type { BarSeriesOption, LineSeriesOption, ScatterSeriesOption } from 'echarts/charts'
import { DataZoomComponent, GridComponent, MarkLineComponent, ToolboxComponent, TooltipComponent } from 'echarts/components'
import type {
  DataZoomComponentOption,
  GridComponentOption,
  MarkLineComponentOption,
  ToolboxComponentOption,
  TooltipComponentOption,
} from 'echarts/components'
import { use } from 'echarts/core'
import type { ComposeOption } from 'echarts/core'
import { CanvasRenderer } from 'echarts/renderers'

use([
  BarChart,
  CanvasRenderer,
  DataZoomComponent,
  GridComponent,
  LineChart,
  MarkLineComponent,
  ScatterChart,
  ToolboxComponent,
  TooltipComponent,
])

export type ChartOption = ComposeOption<
  | BarSeriesOption
  | DataZoomComponentOption
  | GridComponentOption
  | LineSeriesOption
  | MarkLineComponentOption
  | ScatterSeriesOption
  | ToolboxComponentOption
  | TooltipComponentOption
>

export type SeriesOption = BarSeriesOption | LineSeriesOption | ScatterSeriesOption

export { connect } from 'echarts/core'
