import { describe, expect, it } from 'vitest'

import type { Knob, Recipe } from '../types'
import { canHold, carryOver, emptyParked } from './carry'
import { type Draft, emptyDraft, overrideRow } from './draft'

const text = { en: 'x', zh: 'x' }

function knobOf(name: string, part: Partial<Knob> = {}): Knob {
  return {
    name, type: 'float', default: 0, title: text, help: text, unit: null, minimum: null, maximum: null, exclusive_minimum: null,
    choices: [], can_be_empty: false, advanced: false, group: 'run', engine_keys: [], ...part,
  }
}

function recipeOf(id: string, engine: Recipe['engine'], knobs: Knob[]): Recipe {
  return {
    id, engine, knobs, family: 'rl', title: text, description: text, paper: null, is_experimental: false, trains_on: 'verl-rl',
    data_formats: [], headline_metrics: [], fixed: {}, presets: [],
  }
}

const grpo = recipeOf('grpo', 'verl-ppo', [knobOf('learning_rate'), knobOf('loss', { type: 'choice', choices: ['mean', 'sum'], default: 'mean' })])
const ppo = recipeOf('ppo', 'verl-ppo', [knobOf('learning_rate'), knobOf('loss', { type: 'choice', choices: ['mean'], default: 'mean' })])
const dpo = recipeOf('dpo', 'trl', [knobOf('learning_rate', { maximum: 0.01 }), knobOf('beta')])

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

  it('leaves behind a value that its knob cannot hold', () => {
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

describe('a knob', () => {
  it.each([
    [knobOf('a', { type: 'int' }), 1.5, false],
    [knobOf('a', { type: 'int' }), 2, true],
    [knobOf('a', { exclusive_minimum: 0 }), 0, false],
    [knobOf('a', { type: 'bool' }), 1, false],
    [knobOf('a', { type: 'str', default: '' }), null, false],
    [knobOf('a', { type: 'str', default: null }), null, true],
    [knobOf('a', { default: 0.8, can_be_empty: true }), null, true],
  ])('%# holds what suits its type and range', (knob, value, expected) => {
    expect(canHold(knob, value)).toBe(expected)
  })
})
