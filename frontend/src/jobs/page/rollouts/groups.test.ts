import { describe, expect, it } from 'vitest'

import type { Rollout } from '../../types'
import { byId, foldIdentical, groupRollouts, position } from './groups'

function rollout(group: string, score: number | null, part: Partial<Rollout> = {}): Rollout {
  return {
    group,
    prompt: `prompt ${group}`,
    response: '',
    ground_truth: null,
    score,
    reward_parts: {},
    response_tokens: 1,
    advantage: null,
    is_truncated: false,
    id: 1,
    step: 1,
    split: 'train',
    number: 1,
    turn_count: null,
    stop_reason: null,
    trajectory: null,
    ...part,
  }
}

describe('rollouts', () => {
  it('stand with the others of their prompt, best first', () => {
    const groups = groupRollouts([rollout('a', 0), rollout('b', 1), rollout('a', 1)])

    expect(groups.map((group) => [group.id, group.rollouts.map((one) => one.score)])).toEqual([
      ['1/a', [1, 0]],
      ['1/b', [1]],
    ])
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

describe('a filtered group', () => {
  const whole = {
    step: 1,
    group: 'a',
    prompt_key: 'k',
    messages: null,
    count: 8,
    mean: 0.25,
    lowest: 0,
    highest: 1,
    correct: 2,
    is_uniform: false,
    tokens: 80,
  }

  it('keeps the numbers of all of its responses', () => {
    const [group] = groupRollouts([rollout('a', 1), rollout('a', 1)], byId([whole]))

    expect([group?.count, group?.meanScore, group?.isUniform, group?.promptKey]).toEqual([8, 0.25, false, 'k'])
  })

  it('is another one at another step', () => {
    expect(groupRollouts([rollout('a', 1), rollout('a', 1, { step: 2 })]).map((group) => group.step)).toEqual([1, 2])
  })
})

describe('identical responses', () => {
  it('stand once with their number, unless their scores differ', () => {
    const folded = foldIdentical([
      rollout('a', 1, { response: 'x' }),
      rollout('a', 0, { response: 'x' }),
      rollout('a', 1, { response: 'x' }),
      rollout('a', 1, { response: 'y' }),
    ])

    expect(folded.map((one) => [one.first.response, one.first.score, one.count])).toEqual([
      ['x', 1, 2],
      ['x', 0, 1],
      ['y', 1, 1],
    ])
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
