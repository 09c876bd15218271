import { describe, expect, it } from 'vitest'

import { endsOfFlat } from './metricOption'

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
