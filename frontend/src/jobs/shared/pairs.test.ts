import { describe, expect, it } from 'vitest'

import examples from './heldOut.examples.json'
import { groupKeys, isEvaluation, isHeldOut, stemOf } from './pairs'

describe('metrics of training and held-out rows', () => {
  it.each([
    ['train/loss', 'loss', false],
    ['val/loss', 'loss', true],
    ['eval_rewards/accuracies', 'rewards/accuracies', true],
    ['rewards/accuracies', 'rewards/accuracies', false],
    ['val-core/gsm8k/acc/mean@1', 'val-core/gsm8k/acc/mean@1', false],
    ['training/rollout_probs_diff_mean', 'training/rollout_probs_diff_mean', false],
    ['evaluator/x', 'evaluator/x', false],
  ])('%s', (key, stem, evaluation) => {
    expect(stemOf(key)).toBe(stem)
    expect(isEvaluation(key)).toBe(evaluation)
  })

  // The API's tests read the same list.
  it.each(Object.entries(examples))('%s was measured on held-out rows: %s', (key, expected) => {
    expect(isHeldOut(key)).toBe(expected)
  })

  it('share a chart, training first, whichever was asked for', () => {
    const reported = ['eval_rewards/margins', 'rewards/margins', 'actor/entropy']

    expect(groupKeys(['eval_rewards/margins', 'actor/entropy', 'rewards/margins'], reported)).toEqual([
      { key: 'rewards/margins', title: 'rewards/margins', keys: ['rewards/margins', 'eval_rewards/margins'] },
      { key: 'actor/entropy', title: 'actor/entropy', keys: ['actor/entropy'] },
    ])
  })

  it('stand beside what was measured before training', () => {
    const reported = ['baseline/accuracy', 'eval/accuracy', 'train/accuracy', 'baseline/avg_hits']

    expect(groupKeys(reported, reported)).toEqual([
      { key: 'train/accuracy', title: 'accuracy', keys: ['train/accuracy', 'eval/accuracy', 'baseline/accuracy'] },
      { key: 'baseline/avg_hits', title: 'baseline/avg_hits', keys: ['baseline/avg_hits'] },
    ])
  })

  it('stand beside everything that they are compared with', () => {
    const reported = ['baseline/bm25/recall@10', 'baseline/untrained/recall@10', 'eval/recall@10', 'eval/recall@1']

    expect(groupKeys(reported, reported)).toEqual([
      {
        key: 'eval/recall@10',
        title: 'recall@10',
        keys: ['eval/recall@10', 'baseline/bm25/recall@10', 'baseline/untrained/recall@10'],
      },
      { key: 'eval/recall@1', title: 'eval/recall@1', keys: ['eval/recall@1'] },
    ])
  })

  it('stand alone where the run reports only one of them', () => {
    expect(groupKeys(['val/loss'], ['val/loss'])).toEqual([{ key: 'val/loss', title: 'val/loss', keys: ['val/loss'] }])
  })
})
