import { describe, expect, it } from 'vitest'

import type { StageCreate, Template } from '../types'
import { draftOfStages, draftOfTemplate, emptyDraft, missingRows, toRequest } from './draft'

const text = (en: string) => ({ en, zh: `${en}（中文）` })
const template: Template = {
  id: 'agent',
  title: text('Agent'),
  description: text('…'),
  missing_recipes: [],
  stages: [
    {
      id: 'warm-up',
      title: text('Warm-up'),
      kind: 'train',
      recipe: 'agent_sft',
      exports: true,
      is_optional: true,
      dataset: text('Dialogs'),
    },
    {
      id: 'sft',
      title: text('SFT'),
      kind: 'train',
      recipe: 'agent_sft',
      model_stage: 'warm-up',
      needs: ['warm-up'],
      exports: true,
      is_optional: false,
    },
    {
      id: 'evaluation',
      title: text('Evaluation'),
      kind: 'evaluate',
      model_stage: 'sft',
      needs: ['sft', 'warm-up'],
      exports: true,
      is_optional: false,
      benchmarks: [{ benchmark: 'custom', scorer: { kind: 'tool_use' } }, { benchmark: 'gsm8k' }],
    },
  ],
}

function draft() {
  return { ...emptyDraft(), name: ' mine ', baseModel: 'mdl_1', stages: draftOfTemplate(template, 'zh') }
}

describe('a pipeline from a template', () => {
  it('asks for rows of every stage that takes some', () => {
    expect(missingRows(draft())).toEqual(['warm-up', 'sft', 'evaluation'])
  })

  it('becomes stages that start from one another', () => {
    const it = draft()
    for (const stage of it.stages) stage.dataset = `ds_${stage.id}`

    const request = toRequest(it)

    expect(request).toMatchObject({ name: 'mine', start: false })
    expect(request.stages.map(({ id, model, needs }) => [id, model, needs])).toEqual([
      ['warm-up', { base: 'mdl_1' }, []],
      ['sft', { stage: 'warm-up' }, []],
      ['evaluation', { stage: 'sft' }, ['warm-up']],
    ])
    expect(request.stages[0]).toMatchObject({ title: 'Warm-up（中文）', recipe: 'agent_sft', dataset: 'ds_warm-up' })
    expect(request.stages[2]?.benchmarks).toEqual([
      { benchmark: 'custom', scorer: { kind: 'tool_use' }, dataset: 'ds_evaluation' },
      { benchmark: 'gsm8k' },
    ])
    expect(request.stages[2]).not.toHaveProperty('dataset')
  })

  it('closes the gap of a stage that is left out', () => {
    const it = draft()
    const [warmUp] = it.stages
    if (warmUp !== undefined) warmUp.isIncluded = false

    const request = toRequest(it)

    expect(request.stages.map(({ id, model, needs }) => [id, model, needs])).toEqual([
      ['sft', { base: 'mdl_1' }, []],
      ['evaluation', { stage: 'sft' }, []],
    ])
    expect(missingRows(it)).toEqual(['sft', 'evaluation'])
  })
})

describe('a pipeline from another', () => {
  it('keeps what the form does not show', () => {
    const stages = [
      {
        id: 'sft',
        title: 'SFT',
        kind: 'train',
        model: { base: 'mdl_9' },
        needs: [],
        recipe: 'sft',
        preset: 'cpu-tiny',
        dataset: 'ds_1',
        params: { learning_rate: 0.1 },
        seed: 7,
        priority: 3,
        exports: true,
        overrides: { 'a.b': 1 },
      },
      {
        id: 'evaluation',
        title: null,
        kind: 'evaluate',
        model: { stage: 'sft' },
        needs: ['sft'],
        seed: 1,
        priority: 0,
        exports: true,
        benchmarks: [
          { benchmark: 'custom', dataset: 'ds_2', split: 'eval', scorer: { kind: 'exact', ignore_case: false } },
        ],
      },
    ] as unknown as StageCreate[]

    const copied = draftOfStages(stages)

    expect(copied.baseModel).toBe('mdl_9')
    expect(toRequest({ ...emptyDraft(), name: 'x', ...copied }).stages).toEqual([
      expect.objectContaining({
        id: 'sft',
        model: { base: 'mdl_9' },
        seed: 7,
        priority: 3,
        params: { learning_rate: 0.1 },
        overrides: { 'a.b': 1 },
        preset: 'cpu-tiny',
      }),
      expect.objectContaining({
        id: 'evaluation',
        title: 'evaluation',
        model: { stage: 'sft' },
        needs: [],
        benchmarks: [expect.objectContaining({ dataset: 'ds_2', split: 'eval' })],
      }),
    ])
  })
})
