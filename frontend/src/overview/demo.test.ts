import { describe, expect, it } from 'vitest'

import type { Template } from '@/jobPipelines'

import { requestOf } from './demo'

const text = (en: string) => ({ en, zh: `${en}（中文）` })
const template: Template = {
  id: 'demo',
  title: text('Demo'),
  description: text('…'),
  model: 'starter',
  missing_recipes: [],
  stages: [
    {
      id: 'sft',
      title: text('SFT'),
      kind: 'train',
      recipe: 'sft',
      preset: 'cpu-tiny',
      exports: true,
      is_optional: false,
      sample: 'answers',
    },
    {
      id: 'grpo',
      title: text('GRPO'),
      kind: 'train',
      recipe: 'grpo',
      preset: 'cpu-tiny',
      model_stage: 'sft',
      needs: ['sft'],
      exports: true,
      is_optional: false,
      sample: 'prompts',
      validation_sample: 'held-out',
      params: { total_steps: 30 },
    },
  ],
}

describe('the request of the demo', () => {
  it('has the datasets of the samples, to train and to validate on', () => {
    const request = requestOf(
      template,
      'en',
      'mdl_1',
      new Map([
        ['answers', 'ds_1'],
        ['prompts', 'ds_2'],
        ['held-out', 'ds_3'],
      ]),
    )

    expect(request.name).toBe('Demo')
    expect(request.stages).toMatchObject([
      {
        id: 'sft',
        model: { base: 'mdl_1' },
        recipe: 'sft',
        preset: 'cpu-tiny',
        dataset: 'ds_1',
        validation_dataset: null,
      },
      { id: 'grpo', model: { stage: 'sft' }, dataset: 'ds_2', validation_dataset: 'ds_3', params: { total_steps: 30 } },
    ])
  })
})
