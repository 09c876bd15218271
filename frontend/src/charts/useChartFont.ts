/** Charts are drawn in the font of the page; ECharts has one of its own. */
import { provide } from 'vue'
import { THEME_KEY } from 'vue-echarts'

import { SANS } from '@/theme/naive'

/** For a component that holds charts. */
export function useChartFont(): void {
  provide(THEME_KEY, { textStyle: { fontFamily: SANS } })
}
