import { describe, expect, it } from 'vitest'

import { newDraft, toGeneration } from './draft'

describe('a generation', () => {
  const ready = { ...newDraft('more'), source: 'endpoint:small:v2' }

  it('asks an endpoint for new rows', () => {
    expect(toGeneration(ready, 'ds_1', null, 'Generation')).toMatchObject({
      name: 'Generation',
      dataset: 'ds_1',
      endpoint: 'small:v2',
      model: null,
      max_cost: 1,
      system: null,
      method: { kind: 'self-instruct', rows: 100 },
      output: { kind: 'dataset', name: 'more' },
    })
  })

  it('asks a model of the platform for answers, and checks them', () => {
    const made = toGeneration(
      { ...ready, name: ' A ', source: 'model:mdl_1', method: 'rejection-sampling', samples: 8 },
      'ds_1',
      'main',
      'x',
    )
    expect(made).toMatchObject({
      name: 'A',
      model: 'mdl_1',
      endpoint: null,
      version: 'main',
      method: { kind: 'rejection-sampling', samples: 8, check: { kind: 'numeric' } },
    })
  })

  it.each([
    ['nobody to ask', { source: null }],
    ['no judge', { method: 'rejection-sampling' as const, check: 'judge' as const }],
    ['no bound of cost', { maxCost: 0 }],
    ['no name for the dataset', { output: { kind: 'dataset' as const, branch: 'main', message: '', name: ' ' } }],
    ['a branch that cannot be', { output: { kind: 'version' as const, branch: 'a b', message: '', name: '' } }],
  ])('waits while there is %s', (_, part) => {
    expect(toGeneration({ ...ready, ...part }, 'ds_1', null, 'x')).toBeNull()
  })
})
