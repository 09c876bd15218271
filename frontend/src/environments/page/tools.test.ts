import { describe, expect, it } from 'vitest'

import type { Environment, Tool } from '../types'
import { launchQuery } from './launching'
import { argumentLines, searchTools } from './tools'

function tool(name: string, description: string, parameters: Record<string, unknown> = {}): Tool {
  return { name, description, parameters, ends_episode: false }
}

describe('the tools of an environment', () => {
  it('are found by the words of name and description, in any order', () => {
    const tools = [tool('weather_today', 'The weather of a place'), tool('trains', 'Trains to a place')]

    expect(searchTools(tools, 'PLACE weather').map((one) => one.name)).toEqual(['weather_today'])
    expect(searchTools(tools, ' ')).toHaveLength(2)
    expect(searchTools(tools, 'ship')).toEqual([])
  })

  it('say what they are called with', () => {
    const parameters = {
      type: 'object',
      properties: {
        sql: { type: 'string', description: 'One SELECT.' },
        params: { type: 'array', items: { type: ['string', 'null'] } },
        unit: { enum: ['m', 'km'] },
        any: {},
      },
      required: ['sql'],
    }

    expect(argumentLines(tool('search', '', parameters))).toEqual([
      { name: 'sql', type: 'string', description: 'One SELECT.', isRequired: true },
      { name: 'params', type: 'string | null[]', description: '', isRequired: false },
      { name: 'unit', type: '"m" | "km"', description: '', isRequired: false },
      { name: 'any', type: 'any', description: '', isRequired: false },
    ])
  })
})

describe('training on an environment', () => {
  const datasets: Environment['datasets'] = [
    { name: 'sft', dataset: { id: 'ds_2', name: 'dialogs' }, splits: { train: 2 } },
    { name: '', dataset: { id: 'ds_1', name: 'queries' }, splits: { train: 4, eval: 2 } },
  ]

  it('fills in recipe, environment and the main rows with their splits', () => {
    expect(launchQuery({ id: 'env_1', kind: 'linksearch', datasets })).toEqual({
      recipe: 'linksearch',
      environment: 'env_1',
      dataset: 'ds_1',
      split: 'train',
      validation: 'eval',
    })
  })

  it('trains on the rows of own tools, and in them where they have none', () => {
    expect(launchQuery({ id: 'env_1', kind: 'own_tools', datasets })).toMatchObject({
      recipe: 'agent_grpo',
      environment: undefined,
      dataset: 'ds_1',
    })
    expect(launchQuery({ id: 'env_1', kind: 'own_tools', datasets: datasets.slice(0, 1) })).toMatchObject({
      recipe: 'agent_sft',
      dataset: 'ds_2',
      validation: undefined,
    })
    expect(launchQuery({ id: 'env_1', kind: 'own_tools', datasets: [] })).toMatchObject({
      recipe: 'tune',
      environment: 'env_1',
    })
  })

  it('asks for nothing that is not there', () => {
    expect(launchQuery({ id: 'env_1', kind: 'new', datasets: [] })).toEqual({
      recipe: undefined,
      environment: 'env_1',
      dataset: undefined,
      split: undefined,
      validation: undefined,
    })
  })
})
