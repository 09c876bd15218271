import { describe, expect, it } from 'vitest'

import { countBelow, meanOf, readFinding, trimBins } from './finding'

describe('findings of a step', () => {
  it('are read as histograms', () => {
    expect(readFinding({ kind: 'histogram', edges: [0, 0.5, 1], counts: [3, 1] })).toEqual({
      kind: 'histogram',
      count: 4,
      bins: [
        { from: 0, to: 0.5, count: 3 },
        { from: 0.5, to: 1, count: 1 },
      ],
    })
  })

  it('are read as rankings, without rows that are none', () => {
    const row = { value: 0.1, row: { answer: 'x' } }
    expect(readFinding({ kind: 'ranking', limit: 10, lowest: [row, { value: 'x' }], highest: [] })).toEqual({
      kind: 'ranking',
      lowest: [row],
      highest: [],
    })
  })

  it('are read as tallies, most frequent first', () => {
    expect(readFinding({ kind: 'tally', limit: 2, counts: { a: 1, b: 5 }, others: 7 })).toEqual({
      kind: 'tally',
      counts: [
        ['b', 5],
        ['a', 1],
      ],
      others: 7,
    })
  })

  it('are read as counts and plain values', () => {
    expect(readFinding({ '2': 10, '3-4': 1 })).toEqual({
      kind: 'counts',
      counts: [
        ['2', 10],
        ['3-4', 1],
      ],
    })
    expect(readFinding(0.25)).toEqual({ kind: 'value', value: 0.25 })
  })

  it.each([
    [null],
    [[{ size: 2 }]],
    [{}],
    [{ a: 'x' }],
    [{ kind: 'histogram', edges: [0], counts: [1] }],
    [{ kind: 'tally', counts: 'x' }],
  ])('that cannot be drawn are left out: %j', (value) => {
    expect(readFinding(value)).toBeNull()
  })

  const bins = [
    { from: 0, to: 1, count: 0 },
    { from: 1, to: 2, count: 2 },
    { from: 2, to: 3, count: 2 },
    { from: 3, to: 4, count: 0 },
  ]

  it('are drawn without empty ends', () => {
    expect(trimBins(bins)).toEqual(bins.slice(1, 3))
    expect(trimBins(bins.slice(0, 1))).toEqual([])
  })

  it('have a mean, and a number of values below a bound', () => {
    expect(meanOf(bins)).toBe(2)
    expect(meanOf([])).toBeNull()
    expect(countBelow(bins, 2)).toBe(2)
    expect(countBelow(bins, 1.5)).toBe(1)
    expect(countBelow(bins, 9)).toBe(4)
  })
})
