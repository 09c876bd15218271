import { describe, expect, it } from 'vitest'

import type { Parameter, Recipe } from '../types'
import { canHold, carryOver, emptyParked } from './carry'
import { type Draft, emptyDraft, overrideRow } from './draft'

const text = { en: 'x', zh: 'x' }

function parameterOf(name: string, part: Partial<Parameter> = {}): Parameter {
  return {
    name,
    type: 'float',
    default: 0,
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
    ...part,
  }
}

function recipeOf(id: string, engine: Recipe['engine'], parameters: Parameter[]): Recipe {
  return {
    id,
    engine,
    parameters,
    family: 'rl',
    title: text,
    description: text,
    paper: null,
    is_experimental: false,
    row_format: 'verl-rl',
    data_formats: [],
    headline_metrics: [],
    fixed: {},
    presets: [],
  }
}

const grpo = recipeOf('grpo', 'verl-ppo', [
  parameterOf('learning_rate'),
  parameterOf('loss', { type: 'choice', choices: ['mean', 'sum'], default: 'mean' }),
])
const ppo = recipeOf('ppo', 'verl-ppo', [
  parameterOf('learning_rate'),
  parameterOf('loss', { type: 'choice', choices: ['mean'], default: 'mean' }),
])
const dpo = recipeOf('dpo', 'trl', [parameterOf('learning_rate', { maximum: 0.01 }), parameterOf('beta')])

function draft(part: Partial<Draft> = {}): Draft {
  return { ...emptyDraft(), recipe: 'grpo', ...part }
}

describe('another recipe', () => {
  it('keeps the turns that both have and gives the others back on the way home', () => {
    const form = draft({ params: { learning_rate: 0.001, loss: 'sum' } })

    const parked = carryOver(form, emptyParked(), grpo, dpo)
    expect(form).toMatchObject({ recipe: 'dpo', params: { learning_rate: 0.001 } })

    form.params = { ...form.params, learning_rate: 0.002, beta: 0.2 }
    carryOver(form, parked, dpo, grpo)
    expect(form.params).toEqual({ learning_rate: 0.002, loss: 'sum' })
  })

  it('leaves behind a value that its parameter cannot hold', () => {
    const form = draft({ params: { learning_rate: 0.5, loss: 'sum' } })

    carryOver(form, emptyParked(), grpo, ppo)
    expect(form.params).toEqual({ learning_rate: 0.5 })

    carryOver(form, emptyParked(), ppo, dpo)
    expect(form.params).toEqual({})
  })

  it('takes engine settings along only where the engine stays', () => {
    const row = overrideRow('actor.clip', '0.2')
    const form = draft({ overrides: [row] })

    carryOver(form, emptyParked(), grpo, ppo)
    expect(form.overrides).toEqual([row])

    const parked = carryOver(form, emptyParked(), ppo, dpo)
    expect(form.overrides).toEqual([])
    carryOver(form, parked, dpo, grpo)
    expect(form.overrides).toEqual([row])
  })
})

describe('a parameter', () => {
  it.each([
    [parameterOf('a', { type: 'int' }), 1.5, false],
    [parameterOf('a', { type: 'int' }), 2, true],
    [parameterOf('a', { exclusive_minimum: 0 }), 0, false],
    [parameterOf('a', { type: 'bool' }), 1, false],
    [parameterOf('a', { type: 'str', default: '' }), null, false],
    [parameterOf('a', { type: 'str', default: null }), null, true],
    [parameterOf('a', { default: 0.8, can_be_empty: true }), null, true],
  ])('%# holds what suits its type and range', (parameter, value, expected) => {
    expect(canHold(parameter, value)).toBe(expected)
  })
})
