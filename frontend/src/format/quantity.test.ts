import { describe, expect, it } from 'vitest'

import { sayParameters } from './quantity'

describe('a number of parameters', () => {
  it.each([
    [812, '812'],
    [1_000, '1 K'],
    [135_000_000, '135 M'],
    [596_049_920, '596 M'],
    [7_615_616_512, '7.62 B'],
    [10_000_000_000, '10 B'],
    [1_000_000_000_000, '1 T'],
  ])('%i is said as %s', (count, text) => {
    expect(sayParameters(count)).toBe(text)
  })
})
