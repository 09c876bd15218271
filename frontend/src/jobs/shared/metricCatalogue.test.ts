import { describe, expect, it } from 'vitest'

import en from '../locales/en'
import { defaultKeys, metricName, metricUnit } from './metricCatalogue'

describe('the charts that a run gets unasked', () => {
  it('begin with what the recipe names', () => {
    const reported = ['actor/entropy', 'critic/score/mean', 'perf/throughput']

    expect(defaultKeys(['perf/throughput', 'critic/score/mean'], reported)).toEqual([
      'perf/throughput',
      'critic/score/mean',
      'actor/entropy',
    ])
  })

  it('leave out what the run does not report', () => {
    expect(defaultKeys(['critic/rewards/mean', 'actor/entropy'], ['actor/entropy'])).toEqual(['actor/entropy'])
  })

  it('find the validation metric whatever the data is called', () => {
    expect(defaultKeys(['val-core/dataset/acc/mean@1'], ['val-core/gsm8k/acc/mean@1'])).toEqual([
      'val-core/gsm8k/acc/mean@1',
    ])
  })

  it('show a meaning once: not the reward and the score', () => {
    expect(defaultKeys([], ['critic/score/mean', 'critic/rewards/mean'])).toEqual(['critic/rewards/mean'])
  })
})

describe('what is known about a metric', () => {
  it.each([
    ['response_length/mean', 'responseLength', 'tokens'],
    ['timing_s/update_actor', null, 'seconds'],
    ['val-core/x/y/acc/mean@8', 'validationAccuracy', null],
    ['something/else', null, null],
  ])('%s', (key, name, unit) => {
    expect(metricName(key)).toBe(name)
    expect(metricUnit(key)).toBe(unit)
  })
})

describe('the names of metrics', () => {
  it('are all in the locale', () => {
    const keys = [
      'critic/rewards/mean',
      'critic/score/mean',
      'val-core/a/acc/mean@1',
      'val/loss',
      'train/loss',
      'eval_loss',
      'loss',
      'actor/pg_loss',
      'actor/ppo_kl',
      'rewards/margins',
      'eval_rewards/margins',
      'train/rewards/accuracies',
      'eval_rewards/accuracies',
      'rewards/chosen',
      'rewards/rejected',
      'logps/chosen',
      'logps/rejected',
      'mean_token_accuracy',
      'critic/vf_loss',
      'critic/vf_explained_var',
      'actor/kl_loss',
      'actor/entropy',
      'actor/pg_clipfrac',
      'actor/grad_norm',
      'actor/lr',
      'response_length/mean',
      'response_length/clip_ratio',
      'prompt_length/mean',
      'perf/throughput',
      'timing_s/step',
      'timing_s/gen',
      'rollout_corr/kl',
      'training/rollout_probs_diff_mean',
      'training/rollout_probs_diff_max',
      'training/rollout_actor_probs_pearson_corr',
      'critic/advantages/mean',
      'training/uniform_group_fraction',
      'training/all_correct_group_fraction',
      'training/all_wrong_group_fraction',
      'training/uniform_group_token_fraction',
      'training/length_score_correlation',
      'training/repeated_ngram_fraction',
      'training/format_only_fraction',
      'training/answer_reward_mean',
    ]

    expect(keys.map(metricName).sort()).toEqual(Object.keys(en.metric).sort())
  })

  it('have units that are in the locale', () => {
    const keys = [
      'timing_s/x',
      'timing_per_token_ms/x',
      'response_length/max',
      'perf/max_memory_allocated_gb',
      'perf/throughput',
      'agent/turns/mean',
      'agent/calls/mean',
      'data/rows',
    ]

    expect([...new Set(keys.map(metricUnit))].sort()).toEqual(Object.keys(en.unit).sort())
  })
})
