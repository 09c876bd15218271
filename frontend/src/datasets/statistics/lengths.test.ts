import { describe, expect, it } from 'vitest'

import type { Lengths } from '../types'
import { binsOfLengths, meanOf, quantileOf, topOf } from './lengths'

const lengths: Lengths = {
  count: 10,
  least: 1,
  most: 11,
  total: 50,
  histogram: { kind: 'histogram', edges: [0, 1, 2, 3, 4, 6, 8, 12, 16], counts: [0, 2, 0, 0, 4, 0, 4, 0] },
}
const none: Lengths = {
  count: 0,
  least: 0,
  most: 0,
  total: 0,
  histogram: { kind: 'histogram', edges: [0, 1, 2], counts: [0, 0] },
}

describe('the bars of lengths', () => {
  it('reach from the first to the last that holds something, in whole numbers', () => {
    expect(binsOfLengths(lengths)).toEqual([
      { from: 1, to: 1, count: 2 },
      { from: 2, to: 2, count: 0 },
      { from: 3, to: 3, count: 0 },
      { from: 4, to: 5, count: 4 },
      { from: 6, to: 7, count: 0 },
      { from: 8, to: 11, count: 4 },
    ])
  })

  it('are none where nothing was counted', () => {
    expect(binsOfLengths(none)).toEqual([])
    expect(binsOfLengths({ count: 0, least: 0, most: 0, total: 0 })).toEqual([])
  })
})

describe('the quantiles of lengths', () => {
  it('lie within a bar, and between the shortest and the longest', () => {
    expect(quantileOf(lengths, 0)).toBe(1)
    expect(quantileOf(lengths, 0.5)).toBe(5.5)
    expect(quantileOf(lengths, 0.8)).toBe(10)
    expect(quantileOf(lengths, 1)).toBe(11)
  })

  it('are none of nothing', () => {
    expect(quantileOf(none, 0.5)).toBeNull()
    expect(meanOf(none)).toBeNull()
    expect(meanOf(lengths)).toBe(5)
  })
})

describe('the most frequent names', () => {
  it('come first; the rest is one number', () => {
    expect(topOf({ en: 5, zh: 9, fr: 1, de: 2 }, 2)).toEqual({
      named: [
        ['zh', 9],
        ['en', 5],
      ],
      others: 3,
      total: 17,
    })
    expect(topOf({}, 2)).toEqual({ named: [], others: 0, total: 0 })
  })
})
