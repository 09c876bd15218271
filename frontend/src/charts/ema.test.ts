import { describe, expect, it } from 'vitest'

import { smooth } from './ema'

describe('smoothing', () => {
  it('starts at the first value instead of being drawn to zero', () => {
    expect(smooth([10, 10, 10], 0.9).map((value) => Number(value.toFixed(9)))).toEqual([10, 10, 10])
  })

  it('follows the corrected recurrence', () => {
    const [first, second, third] = smooth([1, 2, 4], 0.5)

    // Means 0.5, 1.25, 2.625 over 1 − 0.5ⁿ.
    expect(first).toBeCloseTo(0.5 / 0.5)
    expect(second).toBeCloseTo(1.25 / 0.75)
    expect(third).toBeCloseTo(2.625 / 0.875)
  })

  it('leaves the values alone at weight 0', () => {
    expect(smooth([3, 1, 2], 0)).toEqual([3, 1, 2])
  })

  it('keeps a NaN where it is and goes on as if it had not been', () => {
    const withGap = smooth([1, NaN, 2, 4], 0.5)
    const without = smooth([1, 2, 4], 0.5)

    expect(withGap[1]).toBeNaN()
    expect(withGap.filter((value) => !Number.isNaN(value))).toEqual(without)
  })

  it('hardly touches points that lie far apart', () => {
    const smoothed = smooth([0, 1, 0, 1], 0.6, [1, 25, 25, 25])

    smoothed.forEach((value, index) => {
      expect(value).toBeCloseTo(index % 2, 4)
    })
  })

  it('smooths a thinned curve like the whole one', () => {
    const whole = Array.from({ length: 400 }, (_, index) => index)
    const thinned = whole.filter((index) => index % 4 === 0)

    const smoothWhole = smooth(whole, 0.95)
    const smoothThinned = smooth(
      thinned,
      0.95,
      thinned.map((_, index) => (index === 0 ? 1 : 4)),
    )

    expect(Math.abs((smoothThinned.at(-1) ?? 0) - (smoothWhole[396] ?? 0))).toBeLessThan(2)
  })
})
