import { describe, expect, it } from 'vitest'

import { readChosen, withBaseline, writeChosen } from './chosen'

describe('the compared evaluations in the address', () => {
  it('come in their order, each once', () => {
    expect(readChosen({ ids: 'ev_b, ev_a,,ev_b' })).toEqual(['ev_b', 'ev_a'])
    expect(readChosen({ ids: ['ev_a', 'ev_b,ev_c'] })).toEqual(['ev_a', 'ev_b', 'ev_c'])
    expect(readChosen(writeChosen(['ev_a', 'ev_b']))).toEqual(['ev_a', 'ev_b'])
    expect(readChosen({})).toEqual([])
  })

  it('may be named as earlier links did', () => {
    expect(readChosen({ a: 'ev_a', b: 'ev_b' })).toEqual(['ev_a', 'ev_b'])
  })

  it('keep their order behind another baseline', () => {
    expect(withBaseline(['ev_a', 'ev_b', 'ev_c'], 'ev_c')).toEqual(['ev_c', 'ev_a', 'ev_b'])
  })
})
