import { describe, expect, it } from 'vitest'

import type { Rollout } from '../../types'
import { groupRollouts, position } from './groups'

function rollout(group: string, score: number | null, part: Partial<Rollout> = {}): Rollout {
  return {
    group, prompt: `prompt ${group}`, response: '', ground_truth: null, score, reward_parts: {}, response_tokens: 1,
    advantage: null, is_truncated: false, id: 1, step: 1, split: 'train', number: 1, turn_count: null, stop_reason: null, trajectory: null, ...part,
  }
}

describe('rollouts', () => {
  it('stand with the others of their prompt, best first', () => {
    const groups = groupRollouts([rollout('a', 0), rollout('b', 1), rollout('a', 1)])

    expect(groups.map((group) => [group.group, group.rollouts.map((one) => one.score)])).toEqual([['a', [1, 0]], ['b', [1]]])
    expect(groups[0]?.meanScore).toBe(0.5)
  })

  it('of which all scored the same are known as such', () => {
    const groups = groupRollouts([rollout('a', 1), rollout('a', 1), rollout('b', 0), rollout('b', 1), rollout('c', 1)])

    expect(groups.map((group) => group.isUniform)).toEqual([true, false, false])
  })

  it('without a score count as worst and do not touch the mean', () => {
    const [group] = groupRollouts([rollout('a', null), rollout('a', 1)])

    expect(group?.rollouts.map((one) => one.score)).toEqual([1, null])
    expect(group?.meanScore).toBe(1)
  })
})

describe('the colour of a score', () => {
  it.each([
    [0, 0, 1, 0],
    [3, 1, 5, 0.5],
    [2, 2, 2, 0.5],
    [9, 0, 1, 1],
  ])('%d between %d and %d lies at %d', (score, low, high, expected) => {
    expect(position(score, low, high)).toBe(expected)
  })
})
