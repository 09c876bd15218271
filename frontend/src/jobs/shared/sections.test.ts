import { describe, expect, it } from 'vitest'

import { inSections, sectionOf } from './sections'

describe('the section of a metric', () => {
  it.each([
    ['critic/rewards/mean', 'reward'],
    ['rewards/margins', 'reward'],
    ['training/uniform_group_fraction', 'reward'],
    ['val-core/gsm8k/acc/mean@1', 'validation'],
    ['eval_loss', 'validation'],
    ['actor/entropy', 'actor'],
    ['rollout_corr/kl', 'actor'],
    ['critic/vf_loss', 'critic'],
    ['response_length/mean', 'length'],
    ['timing_s/step', 'performance'],
    ['train/time(s)', 'performance'],
    ['perf/throughput', 'performance'],
    ['perf/max_memory_allocated_gb', 'machine'],
    ['train/loss', 'training'],
    ['loss', 'training'],
    ['my_own/figure', 'other'],
  ])('%s', (key, section) => {
    expect(sectionOf(key)).toBe(section)
  })

  it('is left out where a run has few charts, or all of one kind', () => {
    const few = ['train/loss', 'train/lr', 'perf/throughput'].map((key) => ({ key }))
    const alike = Array.from({ length: 9 }, (_, index) => ({ key: `actor/own_${index}` }))

    expect(inSections(few)).toEqual([{ name: null, charts: few }])
    expect(inSections(alike)).toEqual([{ name: null, charts: alike }])
  })

  it('keeps the order of its charts, and holds every one', () => {
    const keys = ['actor/b', 'perf/throughput', 'actor/a', 'critic/score/mean', 'own', 'critic/vf_loss', 'loss']

    expect(
      inSections(keys.map((key) => ({ key }))).map(({ name, charts }) => [name, charts.map((one) => one.key)]),
    ).toEqual([
      ['reward', ['critic/score/mean']],
      ['training', ['loss']],
      ['actor', ['actor/b', 'actor/a']],
      ['critic', ['critic/vf_loss']],
      ['performance', ['perf/throughput']],
      ['other', ['own']],
    ])
  })
})
