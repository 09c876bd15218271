import { describe, expect, it } from 'vitest'

import type { Rollout } from '../../../types'
import { isEpisode, isToldByCalls, neighbour, rewardBars, sumsOf } from './episodes'
import type { Turn } from './types'

function turn(role: Turn['role'], part: Partial<Turn> = {}): Turn {
  return { role, text: role, tokens: 10, is_trained: role === 'assistant', calls: [], duration_s: null, ...part }
}

function call(result: string | null, error: string | null = null) {
  return { name: 'search', arguments: {}, result, result_count: null, error, duration_s: 0.1 }
}

function rollout(id: number, score: number | null, stop: string | null): Rollout {
  return {
    id,
    step: 1,
    split: 'train',
    number: id,
    group: 'g',
    prompt: 'p',
    response: '',
    ground_truth: null,
    score,
    reward_parts: {},
    response_tokens: 1,
    advantage: null,
    is_truncated: false,
    turn_count: stop === null ? null : 2,
    stop_reason: stop,
    trajectory: null,
  }
}

describe('the episodes of a step', () => {
  const episodes = [
    rollout(7, 0.2, 'turns'),
    rollout(8, 1, null),
    rollout(9, 2.5, 'answered'),
    rollout(10, null, 'answered'),
  ].filter(isEpisode)

  it('are the responses of an agent', () => {
    expect(episodes.map((one) => one.id)).toEqual([7, 9, 10])
  })

  it('are walked through within the filter, and no further than its ends', () => {
    expect(neighbour(episodes, 7, 1)?.id).toBe(9)
    expect(neighbour(episodes, 10, 1)).toBeNull()
    expect(neighbour(episodes, 99, -1)?.id).toBe(7)
  })
})

describe('an episode', () => {
  it('sums what was said, called and trained on', () => {
    const turns = [
      turn('system'),
      turn('assistant', { calls: [call('[]'), call(null, 'SYNTAX')] }),
      turn('tool', { tokens: 5 }),
      turn('assistant'),
    ]

    expect(sumsOf({ turns })).toEqual({ turns: 2, calls: 2, failedCalls: 1, tokens: 35, trainedTokens: 20 })
  })

  it('does not say a result twice, but what the loop said of its own', () => {
    const turns = [
      turn('assistant', { calls: [call('{"rows": []}')] }),
      turn('tool', { text: ' {"rows": []}\n' }),
      turn('tool', { text: 'last turn: return_results' }),
    ]

    expect([0, 1, 2].map((index) => isToldByCalls(turns, index))).toEqual([false, true, false])
  })
})

describe('the bars of a reward', () => {
  it('share one axis; a count beside rewards has none', () => {
    expect(rewardBars({ outcome: 1.5, penalty: -0.75, turns: 12, none: null })).toEqual([
      { name: 'outcome', value: 1.5, share: 1 },
      { name: 'penalty', value: -0.75, share: 0.5 },
      { name: 'turns', value: 12, share: null },
    ])
  })

  it('of nothing but zeros are none', () => {
    expect(rewardBars({ score: 0 })).toEqual([{ name: 'score', value: 0, share: null }])
  })
})
