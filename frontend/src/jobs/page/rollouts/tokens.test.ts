import { describe, expect, it } from 'vitest'

import { nearestStep } from '@/charts/lines'

import type { TokenTrace } from '../../types'
import { measureIn, measureOfMetric, measuresOf, rankBySize, scaleOf, shadeOf } from './tokens'

const trace: TokenTrace = {
  first: 0,
  texts: ['a', 'b'],
  log_prob: [-1, null],
  entropy: null,
  advantage: [-0.5, 0.25],
  kl: null,
  difference: null,
  not_finite: [],
}

describe('what was measured of tokens', () => {
  it('is offered as far as the run measures it', () => {
    expect(measuresOf([trace])).toEqual(['log_prob', 'advantage'])
    expect([measureIn('kl'), measureIn('x'), measureIn(undefined)]).toEqual(['kl', null, null])
  })

  it('is darkest at the end of a scale that one outlier does not set', () => {
    const many = { ...trace, log_prob: [...Array<number>(99).fill(-1), -100] }

    expect(scaleOf([many], 'log_prob')).toBe(1)
    expect(scaleOf([trace], 'advantage')).toBe(0.5)
    expect(scaleOf([trace], 'kl')).toBe(0)
  })

  it('puts the response behind a spike first', () => {
    const mild = { trace: { ...trace, advantage: [0.4, null], difference: [0.9, 0] } }
    const wild = { trace: { ...trace, advantage: [-2, 0.1], difference: [0.5, 0.5] } }
    const broken = { trace: { ...trace, not_finite: [1] } }

    expect(rankBySize([mild, wild], 'advantage')).toEqual([wild, mild])
    expect(rankBySize([mild, wild], 'difference')).toEqual([mild, wild])
    expect(rankBySize([mild, wild, broken], 'advantage')[0]).toBe(broken)
    expect(rankBySize([mild, wild], 'kl')).toEqual([mild, wild])
  })

  it('tells both sides of zero apart, and has no colour without a value', () => {
    expect(shadeOf(0.5, 0.5, 'advantage')).toContain('var(--succeeded) 45%')
    expect(shadeOf(-0.25, 0.5, 'advantage')).toContain('var(--failed) 23%')
    expect(shadeOf(-9, 1, 'log_prob')).toContain('var(--stopping) 45%')
    expect([shadeOf(null, 1, 'kl'), shadeOf(1, 0, 'kl')]).toEqual(['transparent', 'transparent'])
  })

  it.each([
    ['actor/ppo_kl', null],
    ['actor/kl_loss', 'kl'],
    ['actor/reward_kl_penalty', 'kl'],
    ['actor/entropy', 'entropy'],
    ['critic/advantages/max', 'advantage'],
    ['critic/advantages/min', 'advantage'],
    ['training/rollout_probs_diff_max', 'difference'],
    ['training/rollout_importance_weight_mean', 'difference'],
    ['rollout_corr/kl', 'difference'],
    ['actor/grad_norm', 'advantage'],
    ['critic/score/mean', null],
    ['response_length/mean', null],
  ])('stands behind %s: %s', (key, measure) => {
    expect(measureOfMetric(key)).toBe(measure)
  })
})

describe('a click in a chart', () => {
  const curve = { steps: [0, 10, 20], values: [1, 2, 3] }

  it('finds the step that is nearest, on either axis', () => {
    const line = { id: 'a', label: 'a', curve, clock: (step: number) => step * 2 }

    expect([nearestStep([line], 'step', 14), nearestStep([line], 'time', 36), nearestStep([], 'step', 1)]).toEqual([
      10,
      20,
      null,
    ])
  })
})
