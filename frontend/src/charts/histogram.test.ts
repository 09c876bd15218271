import { describe, expect, it } from 'vitest'

import { binValues } from './histogram'

describe('binning values', () => {
  it('gives nothing for no values', () => {
    expect(binValues([NaN])).toEqual([])
  })

  it('gives few distinct values a bin each', () => {
    expect(binValues([0, 1, 1, 0, 1])).toEqual([
      { from: 0, to: 0, count: 2 },
      { from: 1, to: 1, count: 3 },
    ])
  })

  it('counts every finite value once', () => {
    const values = Array.from({ length: 1000 }, (_, index) => Math.sin(index) * 3)

    const bins = binValues([...values, NaN, Infinity], 20)

    expect(bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(1000)
    expect(bins.length).toBeLessThanOrEqual(22)
  })

  it('cuts at round numbers', () => {
    const bins = binValues(
      Array.from({ length: 101 }, (_, index) => index / 100),
      10,
    )

    expect(bins.slice(0, 3).map((bin) => bin.from)).toEqual([0, 0.1, 0.2])
  })
})
