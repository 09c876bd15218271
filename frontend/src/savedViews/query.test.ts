import { describe, expect, it } from 'vitest'

import { applyQuery, pickQuery } from './query'

const KEYS = ['kind', 'chart']

describe('the part of an address that a view holds', () => {
  it('is in the order of the keys, with every value', () => {
    expect(pickQuery({ chart: ['val/acc', 'a b'], tab: 'charts', kind: 'train' }, KEYS)).toBe(
      'kind=train&chart=val%2Facc&chart=a+b',
    )
    expect(pickQuery({ tab: 'charts', kind: null }, KEYS)).toBe('')
  })

  it('replaces those keys alone', () => {
    const current = { tab: 'charts', kind: 'all', chart: 'old' }

    expect(applyQuery(current, KEYS, 'chart=val%2Facc&chart=loss')).toEqual({
      tab: 'charts',
      chart: ['val/acc', 'loss'],
    })
    expect(applyQuery(current, KEYS, 'kind=train&gone=1')).toEqual({ tab: 'charts', kind: 'train' })
    expect(applyQuery(current, KEYS, '')).toEqual({ tab: 'charts' })
  })

  it('is the same after a round trip', () => {
    const view = 'kind=train&chart=a%26b&chart=%E4%B8%AD'

    expect(pickQuery(applyQuery({}, KEYS, view) as never, KEYS)).toBe(view)
  })
})
