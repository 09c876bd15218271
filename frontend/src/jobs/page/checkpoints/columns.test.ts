import { describe, expect, it } from 'vitest'

import { columnsUnasked } from './columns'

describe('the figures of checkpoints', () => {
  const keys = ['a', 'b', 'c', 'd', 'reward']

  it('begin with what decides, then with what the recipe names', () => {
    expect(columnsUnasked(keys, ['reward', 'missing'], 'd')).toEqual(['d', 'reward', 'a'])
  })

  it('are shown once each', () => {
    expect(columnsUnasked(keys, ['reward'], 'reward')).toEqual(['reward', 'a', 'b'])
  })
})
