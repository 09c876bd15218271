import { describe, expect, it } from 'vitest'

import type { Lengths, Statistics } from '../types'
import { figuresOf, meanOf, quantileOf, sharedBins } from './figures'

const EDGES = [0, 1, 2, 4, 8]

function lengths(counts: number[], least: number, most: number, total: number): Lengths {
  return {
    count: counts.reduce((sum, one) => sum + one, 0),
    least,
    most,
    total,
    histogram: { kind: 'histogram', edges: EDGES, counts },
  }
}

function statistics(part: Partial<Statistics> = {}): Statistics {
  return {
    rows: 4,
    splits: { train: 4 },
    format: 'text',
    columns: [],
    characters: lengths([0, 0, 4, 0], 2, 3, 10),
    roles: {},
    languages: {},
    duplicates: null,
    tokens: null,
    turns: lengths([0, 0, 0, 0], 0, 0, 0),
    ...part,
  }
}

describe('lengths', () => {
  it('have a mean and quantiles, or none where nothing was measured', () => {
    const some = lengths([0, 2, 2, 4], 1, 7, 32)
    expect(meanOf(some)).toBe(4)
    expect(quantileOf(some, 0.5)).toBe(4)
    expect(quantileOf(some, 1)).toBe(7)
    expect(quantileOf(some, 0)).toBe(1)
    expect(meanOf(null)).toBeNull()
    expect(quantileOf(lengths([0, 0, 0, 0], 0, 0, 0), 0.5)).toBeNull()
  })

  it('are shown over the same stretch', () => {
    const [before, after] = sharedBins(lengths([0, 2, 0, 0], 1, 1, 2), lengths([0, 0, 1, 0], 3, 3, 3))
    expect(before).toEqual([
      { from: 1, to: 2, count: 2 },
      { from: 2, to: 4, count: 0 },
    ])
    expect(after).toEqual([
      { from: 1, to: 2, count: 0 },
      { from: 2, to: 4, count: 1 },
    ])
    expect(sharedBins(null, undefined)).toEqual([[], []])
  })
})

describe('figures side by side', () => {
  it('leave out what neither version knows, and tell splits only where there are several', () => {
    const names = figuresOf(statistics(), statistics({ rows: 3 })).map((one) => one.name)
    expect(names).toEqual(['rows', 'meanCharacters', 'medianCharacters', 'mostCharacters'])
    expect(
      figuresOf(statistics({ splits: { train: 3, test: 1 } }), statistics()).filter((one) => one.name === 'splitRows'),
    ).toMatchObject([
      { of: 'train', before: 3, after: 4 },
      { of: 'test', before: 1, after: 0 },
    ])
  })

  it('count what is missing in a column, and say nothing of a column that is not there', () => {
    const column = { name: 'answer', type: 'text', values: 2, nulls: 1, empty: 1, least: null, most: null, total: null }
    const found = figuresOf(statistics({ columns: [column] }), statistics()).find((one) => one.name === 'missing')
    expect(found).toMatchObject({ of: 'answer', before: 2, after: null })
  })
})
