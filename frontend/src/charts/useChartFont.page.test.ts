import { describe, expect, it } from 'vitest'
import { defineComponent, h, inject } from 'vue'
import { THEME_KEY } from 'vue-echarts'

import { mount } from '@/testing/withSetup'
import { SANS } from '@/theme/naive'

import { useChartFont } from './useChartFont'

describe('the text of charts', () => {
  it('has the font of the page', () => {
    let theme: unknown
    const Chart = defineComponent(() => {
      theme = inject(THEME_KEY, null)
      return () => null
    })
    const Card = defineComponent(() => {
      useChartFont()
      return () => h(Chart)
    })

    const { end } = mount(Card, {})

    expect(theme).toEqual({ textStyle: { fontFamily: SANS } })
    end()
  })
})
