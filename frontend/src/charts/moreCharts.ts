/** The parts of ECharts that bars, whiskers and radars need, beside those of curves. */
import { BarChart, CustomChart, RadarChart } from 'echarts/charts'
import { RadarComponent } from 'echarts/components'
import { use } from 'echarts/core'

import './echarts'

use([BarChart, CustomChart, RadarChart, RadarComponent])
