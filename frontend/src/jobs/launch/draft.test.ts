import { describe, expect, it } from 'vitest'

import type { Issue, Job, Parameter, Recipe } from '../types'
import {
  applySuggestion,
  type Draft,
  draftOfJob,
  emptyDraft,
  inheritedValue,
  overrideRow,
  presetForMachine,
  presetOf,
  readValue,
  setParam,
  toRequest,
  writeValue,
} from './draft'

function parameterOf(name: string, type: Parameter['type'], fallback: Parameter['default']): Parameter {
  const text = { en: name, zh: name }
  return {
    name,
    type,
    default: fallback,
    title: text,
    help: text,
    unit: null,
    minimum: null,
    maximum: null,
    exclusive_minimum: null,
    choices: [],
    can_be_empty: false,
    advanced: false,
    group: 'run',
    engine_keys: [],
  }
}

const text = { en: 'x', zh: 'x' }
const recipe: Recipe = {
  id: 'grpo',
  family: 'rl',
  engine: 'verl-ppo',
  title: text,
  description: text,
  paper: null,
  is_experimental: false,
  row_format: 'verl-rl',
  data_formats: ['verl-rl'],
  headline_metrics: [],
  fixed: {},
  parameters: [
    parameterOf('group_size', 'int', 8),
    parameterOf('learning_rate', 'float', 1e-6),
    parameterOf('use_kl', 'bool', true),
  ],
  presets: [
    { id: 'cpu-tiny', title: text, gpus: 1, params: { group_size: 4 }, overrides: {} },
    { id: 'gpu-24gb', title: text, gpus: 1, params: {}, overrides: {} },
    { id: 'gpu-80gb', title: text, gpus: 1, params: {}, overrides: {} },
    { id: 'gpu-8x80gb', title: text, gpus: 8, params: {}, overrides: {} },
  ],
}

function parameter(name: string): Parameter {
  const found = recipe.parameters.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no parameter ${name}`)
  return found
}

function draft(part: Partial<Draft> = {}): Draft {
  return { ...emptyDraft(), recipe: 'grpo', preset: 'cpu-tiny', model: 'mdl_a', dataset: 'ds_a', ...part }
}

function issue(field: string, code: string, suggestion: string): Issue {
  return { field, code, suggestion, message: '' }
}

describe('values of engine keys', () => {
  it.each([
    ['0.5', 0.5],
    ['1e-6', 1e-6],
    ['true', true],
    ['False', false],
    ['None', null],
    ['[1, 2]', [1, 2]],
    ['"8"', '8'],
    ['cosine', 'cosine'],
  ])('reads %s', (typed, value) => {
    expect(readValue(typed)).toEqual(value)
  })

  it.each([['8'], [8], [true], [null], ['cosine'], [{ a: 1 }]])('writes %j so that it reads the same', (value) => {
    expect(readValue(writeValue(value))).toEqual(value)
  })
})

describe('parameters', () => {
  it("have the preset's value before the recipe's", () => {
    expect(inheritedValue(parameter('group_size'), presetOf(recipe, 'cpu-tiny'))).toBe(4)
    expect(inheritedValue(parameter('group_size'), presetOf(recipe, 'gpu-24gb'))).toBe(8)
  })

  it('are sent only where they were overridden', () => {
    const one = draft()

    setParam(one, parameter('group_size'), presetOf(recipe, 'cpu-tiny'), 16)
    setParam(one, parameter('learning_rate'), presetOf(recipe, 'cpu-tiny'), 1e-6)

    expect(toRequest(one, 'fallback').params).toEqual({ group_size: 16 })
  })

  it('forget a turn that leads back', () => {
    const one = draft({ params: { group_size: 16 } })

    setParam(one, parameter('group_size'), presetOf(recipe, 'cpu-tiny'), 4)

    expect(one.params).toEqual({})
  })
})

describe('the preset for a machine', () => {
  it.each([
    ['cpu', 1, null, 'cpu-tiny'],
    ['cuda', 1, null, 'gpu-24gb'],
    ['cuda', 1, 24, 'gpu-24gb'],
    ['cuda', 1, 80, 'gpu-80gb'],
    ['cuda', 8, null, 'gpu-8x80gb'],
    ['cuda', 8, 80, 'gpu-8x80gb'],
    ['cuda', 8, 24, 'gpu-24gb'],
  ])('on %s with %d slots of %s GB is %s', (platform, slots, gigabytes, preset) => {
    const bytes = gigabytes === null ? null : gigabytes * 1024 ** 3
    expect(presetForMachine(recipe, platform, slots, bytes)).toBe(preset)
  })

  it('with GPUs is none for CPUs, of whatever size', () => {
    const small = {
      ...recipe,
      presets: recipe.presets.flatMap((one) =>
        one.id === 'cpu-tiny' ? [one, { ...one, id: 'cpu-small' as const }] : [one],
      ),
    }
    expect(presetForMachine(small, 'cuda', 1, null)).toBe('gpu-24gb')
  })
})

describe('the request', () => {
  it('carries what the form says and leaves out rows without a key', () => {
    const request = toRequest(
      draft({ overrides: [overrideRow('a.b', '2'), overrideRow('', 'x')], tags: ['t'] }),
      'fallback',
    )

    expect(request).toEqual({
      name: 'fallback',
      recipe: 'grpo',
      preset: 'cpu-tiny',
      model: 'mdl_a',
      dataset: 'ds_a',
      params: {},
      overrides: { 'a.b': 2 },
      seed: 1,
      resources: { gpus: 1 },
      tags: ['t'],
      priority: 0,
    })
  })

  it("of a cloned job is the job's own", () => {
    const job = {
      recipe: 'grpo',
      preset: 'gpu-24gb',
      model: { id: 'mdl_b', name: 'tiny' },
      dataset: { id: 'ds_gone', name: null },
      validation_dataset: null,
      params: { group_size: 2 },
      overrides: { 'a.b': '7' },
      evaluate: null,
      seed: 5,
      resources: { gpus: 2 },
      tags: ['t'],
      priority: 3,
    } as unknown as Job

    const request = toRequest(draftOfJob(job, 'again'), '')

    expect(request).toMatchObject({
      name: 'again',
      model: 'mdl_b',
      dataset: '',
      params: { group_size: 2 },
      overrides: { 'a.b': '7' },
      seed: 5,
      resources: { gpus: 2 },
    })
    expect(request.evaluate).toBeUndefined()
  })

  it('names version and split only where they were chosen', () => {
    expect(Object.keys(toRequest(draft(), 'x')).filter((key) => /version|split/.test(key))).toEqual([])
    expect(
      toRequest(
        draft({ datasetVersion: 'v1', datasetSplit: 'train', validationSplit: 'test', validationVersion: 'left over' }),
        'x',
      ),
    ).toMatchObject({
      dataset_version: 'v1',
      dataset_split: 'train',
      validation_split: 'test',
    })
    expect(toRequest(draft({ validationVersion: 'left over' }), 'x').validation_version).toBeUndefined()
    expect(toRequest(draft({ validationDataset: 'ds_b', validationVersion: 'v2' }), 'x')).toMatchObject({
      validation_dataset: 'ds_b',
      validation_version: 'v2',
    })
  })

  it('of a cloned job reads the same rows, as far as they are there', () => {
    const job = {
      recipe: 'grpo',
      preset: null,
      model: { id: 'mdl_b', name: 'tiny' },
      dataset: { id: 'ds_a', name: 'a' },
      dataset_version: 'abc',
      dataset_split: 'train',
      validation_dataset: { id: 'ds_gone', name: null },
      validation_version: 'def',
      validation_split: 'test',
      params: {},
      overrides: {},
      evaluate: null,
      seed: 1,
      resources: { gpus: 1 },
      tags: [],
      priority: 0,
    } as unknown as Job
    expect(draftOfJob(job, 'again')).toMatchObject({
      dataset: 'ds_a',
      datasetVersion: 'abc',
      datasetSplit: 'train',
      validationDataset: null,
      validationVersion: null,
      validationSplit: null,
    })
  })
})

describe('a suggestion', () => {
  it('renames a parameter that was misspelt and keeps its value', () => {
    const one = draft({ params: { groupsize: 16 } })

    applySuggestion(one, recipe, issue('params.groupsize', 'unknown_parameter', 'group_size'))

    expect(one.params).toEqual({ group_size: 16 })
  })

  it('puts a number in the place of one that does not fit', () => {
    const one = draft({ params: { group_size: 7 } })

    applySuggestion(one, recipe, issue('params.group_size', 'micro_batch_not_divisor', '8'))

    expect(one.params.group_size).toBe(8)
  })

  it('renames an engine key', () => {
    const one = draft({ overrides: [overrideRow('actor.lr', '1')] })

    applySuggestion(one, recipe, issue('overrides.actor.lr', 'unknown_engine_key', 'actor.optim.lr'))

    expect(one.overrides.map((row) => [row.key, row.text])).toEqual([['actor.optim.lr', '1']])
  })

  it('turns the parameter instead of the key behind it', () => {
    const one = draft({ overrides: [overrideRow('actor_rollout_ref.rollout.n', '32')] })

    applySuggestion(one, recipe, issue('overrides.actor_rollout_ref.rollout.n', 'shadows_parameter', 'group_size'))

    expect(one.overrides).toEqual([])
    expect(one.params).toEqual({ group_size: 32 })
  })
})
