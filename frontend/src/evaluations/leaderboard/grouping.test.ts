import { describe, expect, it } from 'vitest'

import { fullLength, groupComparable, type RankedScore } from './grouping'

function ranked(rank: number, configuration: string, value: number, high: number | null = null): RankedScore {
  return {
    rank,
    configuration,
    evaluation_id: `ev_${rank}`,
    target: { kind: 'model', name: `m${rank}`, model: null, job: null, step: null },
    score: { metric: 'accuracy', value, low: null, high, stderr: null, method: 'none', n: 100 },
    created_at: '2026-01-01T00:00:00Z',
  }
}

describe('the board', () => {
  it('keeps scores together that were measured alike, the best of all first', () => {
    const groups = groupComparable([ranked(2, 'b', 0.8), ranked(3, 'a', 0.7), ranked(1, 'a', 0.9)])

    expect(groups.map(({ configuration, rows }) => [configuration, rows.map(({ item }) => item.rank)])).toEqual([['a', [1, 3]], ['b', [2]]])
  })

  it('gives equal scores one place, and leaves the next one out', () => {
    const [group] = groupComparable([ranked(1, 'a', 0.9), ranked(2, 'a', 0.9), ranked(3, 'a', 0.8)])

    expect(group?.rows.map(({ place }) => place)).toEqual([1, 1, 3])
  })
})

describe('the bars of the board', () => {
  it('are full at one for shares, and at the largest value for everything else', () => {
    expect(fullLength([ranked(1, 'a', 0.9)], true)).toBe(1)
    expect(fullLength([ranked(1, 'a', 12, 14), ranked(2, 'a', 9)], false)).toBe(14)
    expect(fullLength([], false)).toBe(0)
  })
})
