import { describe, expect, it } from 'vitest'

import { light } from '@/theme/palettes'

import { endsOfFlat, metricOption } from './metricOption'

describe('the chart', () => {
  const option = metricOption({
    lines: [],
    colors: [],
    xAxis: 'time',
    timeUnitS: 60,
    domain: null,
    isLog: false,
    unit: null,
    xTitle: 'Training time (min)',
    palette: light,
    tooltip: () => '',
    marks: [
      { step: 20, x: 4, label: 'attempt 2', isCritical: false, isPlain: true },
      { step: 20, x: 4, label: 'KL spike', isCritical: true },
      { step: 30, x: 6, label: 'attempt 3', isCritical: false, isPlain: true },
    ],
  })

  it('says what its x axis counts, in which unit', () => {
    expect(JSON.stringify(option.xAxis)).toContain('"name":"Training time (min)"')
  })

  it('labels what happened, once a place', () => {
    const [marks] = option.series as {
      markLine: { data: { name: string; xAxis: number; label: { show: boolean; formatter: () => string } }[] }
    }[]
    expect(marks?.markLine.data.map(({ xAxis, label }) => [xAxis, label.show, label.formatter()])).toEqual([
      [4, true, 'KL spike · attempt 2'],
      [6, true, 'attempt 3'],
    ])
  })
})

describe('the y axis of a curve that stands still', () => {
  it('leaves room around the value', () => {
    expect(endsOfFlat({ min: 2, max: 2 + 1e-12 })?.map((end) => Number(end.toFixed(3)))).toEqual([1.8, 2.2])
    expect(endsOfFlat({ min: 1e-5, max: 1e-5 })?.[0]).toBeCloseTo(9e-6, 12)
    expect(endsOfFlat({ min: 3.016134399, max: 3.016134399 })).toEqual([2.7, 3.4])
    expect(endsOfFlat({ min: 1.0000000004, max: 1.0000000004 })).toEqual([0.9, 1.1])
    expect(endsOfFlat({ min: 0, max: 0 })).toEqual([-1, 1])
  })

  it('is left to the chart where values differ, or where there are none', () => {
    expect(endsOfFlat({ min: 0.1, max: 0.2 })).toBeNull()
    expect(endsOfFlat({ min: Infinity, max: -Infinity })).toBeNull()
  })
})
