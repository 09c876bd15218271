import { describe, expect, it } from 'vitest'

import { light } from '@/theme/palettes'

import { axisEnds, barsHeight, intervalOption, sayBar, whiskerRows } from './intervalBars'

const write = (value: number) => `${Math.round(value * 100)} %`

describe('bars with intervals', () => {
  it('are drawn up to one where all values are shares, so that charts can be compared', () => {
    expect(axisEnds([{ name: 'a', bars: [{ value: 0.2, low: 0.1, high: 0.3 }, null] }])).toEqual({ min: 0, max: 1 })
    expect(axisEnds([{ name: 'a', bars: [{ value: 12.5, low: null, high: null }] }])).toEqual({
      min: undefined,
      max: undefined,
    })
    expect(axisEnds([{ name: 'a', bars: [{ value: 0.9, low: 0.8, high: 1.01 }] }])).toEqual({
      min: undefined,
      max: undefined,
    })
  })

  it('have whiskers only where an interval was found', () => {
    const bars = [
      { value: 0.5, low: 0.4, high: 0.6 },
      null,
      { value: 0.5, low: null, high: null },
      { value: 0, low: 0, high: 0.1 },
    ]

    expect(whiskerRows(bars)).toEqual([
      [0, 0.4, 0.6],
      [3, 0, 0.1],
    ])
  })

  it('say value and interval', () => {
    expect(sayBar({ value: 0.583, low: 0.512, high: 0.651 }, write)).toBe('58 % (51 % – 65 %)')
    expect(sayBar({ value: 0.583, low: null, high: null }, write)).toBe('58 %')
  })

  it('grow with their number, so that each can be read', () => {
    expect(barsHeight(57, 1)).toBeGreaterThan(57 * 20)
    expect(barsHeight(5, 2)).toBeGreaterThan(barsHeight(5, 1))
  })

  it('name a row in the tooltip as text, never as markup', () => {
    const option = intervalOption(
      { names: ['<b>algebra</b>'], series: [{ name: 'a', bars: [{ value: 0.5, low: 0.4, high: 0.6 }] }], write },
      light,
      false,
    )
    const formatter = (option.tooltip as { formatter: (params: unknown) => HTMLElement }).formatter

    const tooltip = formatter([{ dataIndex: 0 }])

    expect(tooltip.textContent).toBe('<b>algebra</b>50 % (40 % – 60 %)')
    expect(tooltip.querySelector('b')).toBeNull()
  })

  it('have one bar and one whisker a series', () => {
    const bars = [{ value: 0.5, low: 0.4, high: 0.6 }]
    const option = intervalOption(
      {
        names: ['algebra'],
        series: [
          { name: 'a', bars },
          { name: 'b', bars: [null] },
        ],
        write,
      },
      light,
      false,
    )

    expect((option.series as { type: string; data: unknown[] }[]).map((one) => [one.type, one.data.length])).toEqual([
      ['bar', 1],
      ['custom', 1],
      ['bar', 1],
      ['custom', 0],
    ])
  })
})
