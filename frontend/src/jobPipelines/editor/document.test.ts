import { describe, expect, it } from 'vitest'

import type { JobPipelineCreate } from '../types'
import { fitsForm, toText } from './document'

const request = {
  name: 'reasoning',
  description: '',
  start: false,
  stages: [
    {
      id: 'sft',
      title: 'SFT',
      kind: 'train',
      needs: [],
      model: { base: null },
      seed: 1,
      priority: 0,
      exports: true,
      recipe: 'sft',
      preset: null,
      dataset: null,
      dataset_split: null,
      params: {},
    },
    {
      id: 'rl',
      title: null,
      kind: 'train',
      needs: [],
      model: { stage: 'sft' },
      seed: 7,
      priority: 0,
      exports: false,
      recipe: 'grpo',
      dataset: 'ds_1',
      params: { total_steps: 3 },
    },
    {
      id: 'measure',
      title: null,
      kind: 'evaluate',
      needs: [],
      model: { stage: 'rl' },
      seed: 1,
      priority: 0,
      exports: true,
      benchmarks: [{ benchmark: 'custom', dataset: null, scorer: { kind: 'exact' } }],
    },
  ],
} as unknown as JobPipelineCreate

describe('a pipeline as text', () => {
  it('says what is not default, and in capitals what is to be chosen', () => {
    expect(toText(request)).toBe(`name: reasoning
stages:
  - id: sft
    title: SFT
    model:
      base: MODEL
    recipe: sft
    dataset: DATASET
  - id: rl
    model:
      stage: sft
    seed: 7
    exports: false
    recipe: grpo
    dataset: ds_1
    params:
      total_steps: 3
  - id: measure
    kind: evaluate
    model:
      stage: rl
    benchmarks:
      - benchmark: custom
        dataset: DATASET
        scorer:
          kind: exact
`)
  })

  it('fits the form where one model stands at the beginning', () => {
    const other = { ...request.stages[0], id: 'other', model: { base: 'mdl_2' } } as JobPipelineCreate['stages'][number]

    expect(fitsForm(request)).toBe(true)
    expect(fitsForm({ ...request, stages: [...request.stages, other, { ...other, model: { base: 'mdl_3' } }] })).toBe(
      false,
    )
  })

  it('fits the form where each stage measures on one dataset and split', () => {
    const measuring = (...rows: [dataset: string, split?: string | null][]) => {
      const benchmarks = rows.map(([dataset, split]) => ({
        benchmark: 'custom',
        dataset,
        split,
        scorer: { kind: 'exact' },
      }))
      return {
        stages: [{ ...request.stages[2], benchmarks: [...benchmarks, { benchmark: 'gsm8k' }] }],
      } as JobPipelineCreate
    }

    expect(fitsForm(measuring(['ds_1', 'eval'], ['ds_1', 'eval']))).toBe(true)
    expect(fitsForm(measuring(['ds_1', null], ['ds_1']))).toBe(true)
    expect(fitsForm(measuring(['ds_1'], ['ds_2']))).toBe(false)
    expect(fitsForm(measuring(['ds_1', 'eval'], ['ds_1', 'test']))).toBe(false)
  })
})
