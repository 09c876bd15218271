import { describe, expect, it } from 'vitest'

import type { GroupScore } from '../types'
import { kindsOf, sortGroups } from './groups'

function group(kind: string, name: string, value: number): GroupScore {
  return {
    kind,
    name,
    score: { metric: 'accuracy', value, stderr: null, low: null, high: null, method: 'none', n: 10 },
  }
}

describe('scores of groups', () => {
  it('are sorted by number where they have one, also beyond nine', () => {
    const groups = ['10', '2', '1'].map((name) => group('level', name, Number(name) / 10))

    expect(sortGroups(groups, 'level').map((one) => one.name)).toEqual(['1', '2', '10'])
    expect(
      sortGroups([group('level', 'Level 5', 1), group('level', 'Level 1', 0)], 'level').map((one) => one.name),
    ).toEqual(['Level 1', 'Level 5'])
  })

  it('are sorted by score otherwise, the best first', () => {
    const groups = [
      group('type', 'Algebra', 0.2),
      group('level', '1', 1),
      group('type', 'Geometry', 0.8),
      group('type', 'Counting', 0.2),
    ]

    expect(sortGroups(groups, 'type').map((one) => one.name)).toEqual(['Geometry', 'Algebra', 'Counting'])
    expect(kindsOf(groups)).toEqual(['type', 'level'])
  })
})
