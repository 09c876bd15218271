import { describe, expect, it } from 'vitest'

import { formatParameter, formatWholeParameter } from './parameter'

describe('a value of a parameter', () => {
  it('is written as a person would, small ones as powers', () => {
    expect([0.00001, 3.1622776e-6, 0.05, 8, 1234567.5, 'bf16', true].map(formatParameter)).toEqual([
      '1e-5',
      '3.162e-6',
      '0.05',
      '8',
      '1.235e6',
      'bf16',
      'true',
    ])
  })

  it('of several parts shows all of them', () => {
    expect([['q_proj', 'v_proj'], { a: 1 }].map(formatParameter)).toEqual(['q_proj, v_proj', '{"a":1}'])
  })

  it('has all of its digits where values are told apart', () => {
    expect([2e-6, 0.00012345, 0.00012346, 12500].map(formatWholeParameter)).toEqual([
      '2e-6',
      '1.2345e-4',
      '1.2346e-4',
      '12500',
    ])
  })
})
