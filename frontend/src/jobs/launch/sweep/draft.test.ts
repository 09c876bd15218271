import { describe, expect, it } from 'vitest'

import type { JobCreate, Parameter } from '../../types'
import {
  chooseMetric,
  emptySweep,
  isSweep,
  readSeeds,
  seedsInAddress,
  startVary,
  toSweep,
  toVariation,
  unreadableOf,
  type Vary,
} from './draft'

const rate = {
  name: 'learning_rate',
  type: 'float',
  default: 1e-5,
  title: { en: '', zh: '' },
  help: { en: '', zh: '' },
} as Parameter
const choice = { ...rate, name: 'precision', type: 'choice', choices: ['fp32', 'bf16'] } as Parameter
const job = { name: 'sft', recipe: 'sft', model: 'mdl_a', dataset: 'ds_a', export_as: { name: 'x' } } as JobCreate

function list(text: string): Vary {
  return { kind: 'list', text, min: '', max: '', count: '' }
}

describe('variations', () => {
  it('reads lists by the type of the parameter', () => {
    expect(toVariation(list('1e-5, 3e-5'), 'float')?.values).toEqual([1e-5, 3e-5])
    expect(toVariation(list('true，false'), 'bool')?.values).toEqual([true, false])
    expect(toVariation(list('fp32, bf16'), 'choice')?.values).toEqual(['fp32', 'bf16'])
  })
  it('reads nothing where one value is no number', () => {
    expect(toVariation(list('1, two'), 'int')).toBeNull()
    expect(toVariation(list(' '), 'int')).toBeNull()
    expect(toVariation({ kind: 'log', text: '', min: '1e-6', max: '', count: '' }, 'float')).toBeNull()
  })
  it('reads ranges with and without points', () => {
    expect(toVariation({ kind: 'log', text: '', min: '1e-6', max: '1e-4', count: '5' }, 'float')).toEqual({
      min: 1e-6,
      max: 1e-4,
      scale: 'log',
      count: 5,
    })
    expect(toVariation({ kind: 'range', text: '', min: '0', max: '1', count: '' }, 'float')).toEqual({
      min: 0,
      max: 1,
      scale: 'linear',
    })
  })
  it('begins with values around the one that stands there, or with all choices', () => {
    expect(startVary(rate, 3e-5).text).toBe('0.00001, 0.00003, 0.00009')
    expect(startVary({ ...rate, type: 'int' }, 8).text).toBe('4, 8, 16')
    expect(startVary(choice, null).text).toBe('fp32, bf16')
  })
})

describe('sweeps', () => {
  it('reads seeds one by one and as spans', () => {
    expect(readSeeds('1-3, 7')).toEqual([1, 2, 3, 7])
    expect([readSeeds('a'), readSeeds('3-1')]).toEqual([null, null])
  })
  it('takes seeds from the address where they can be read', () => {
    expect(['2, 3', 'x', '', undefined, ['1']].map(seedsInAddress)).toEqual([{ seeds: '2, 3' }, {}, {}, {}, {}])
  })
  it('is one where something varies or there are two seeds', () => {
    expect(isSweep(emptySweep())).toBe(false)
    expect(isSweep({ ...emptySweep(), seeds: '1' })).toBe(false)
    expect(isSweep({ ...emptySweep(), seeds: '1-2' })).toBe(true)
    expect(isSweep({ ...emptySweep(), vary: { learning_rate: list('1') } })).toBe(true)
  })
  it('becomes a request without an export, and none while something cannot be read', () => {
    const draft = { ...emptySweep(), vary: { learning_rate: list('1e-5, 1e-4') } }
    const request = toSweep(draft, job, [rate])
    expect(request?.parameters).toEqual({ learning_rate: { values: [1e-5, 1e-4], scale: 'linear' } })
    expect(request?.job).not.toHaveProperty('export_as')
    expect(request?.budget?.runs).toBeNull()
    const broken = { ...draft, vary: { learning_rate: list('x') }, seeds: 'x' }
    expect(unreadableOf(broken, [rate])).toEqual(['learning_rate', 'seeds'])
    expect(toSweep(broken, job, [rate])).toBeNull()
  })
  it('says which end of the metric is the good one, until another metric is chosen', () => {
    const draft = { ...emptySweep(), seeds: '1-2', mode: 'max' as const }
    chooseMetric(draft, 'response_length/mean')
    expect(toSweep(draft, job, [rate])?.objective).toEqual({ metric: 'response_length/mean', mode: null, take: null })

    const shorter = { ...draft, mode: 'min' as const }
    chooseMetric(shorter, 'response_length/mean')
    expect(toSweep(shorter, job, [rate])?.objective?.mode).toBe('min')
  })
  it('lets asha stop runs early without being told how', () => {
    const request = toSweep({ ...emptySweep(), method: 'asha', vary: { learning_rate: list('1, 2') } }, job, [rate])
    expect(request?.early_stop?.rule).toBe('asha')
    expect(request?.budget?.runs).toBe(20)
  })
})
