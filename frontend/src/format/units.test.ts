import { describe, expect, it } from 'vitest'

import { splitBytes, splitDuration } from './units'

describe('splitBytes', () => {
  it.each([
    [0, 0, 'B'],
    [1023, 1023, 'B'],
    [1024, 1, 'KiB'],
    [1536, 1.5, 'KiB'],
    [3 * 1024 ** 3, 3, 'GiB'],
    [5000 * 1024 ** 4, 5000, 'TiB'],
  ])('%i bytes are %d %s', (size, amount, unit) => {
    expect(splitBytes(size)).toEqual({ amount, unit })
  })
})

describe('splitDuration', () => {
  function read(seconds: number): string {
    return splitDuration(seconds)
      .map(({ amount, unit }) => `${amount}${unit}`)
      .join(' ')
  }

  it.each([
    [0, '0s'],
    [0.4, '0s'],
    [59.6, '1min'],
    [61, '1min 1s'],
    [3600, '1h'],
    [3661, '1h 1min'],
    [90_000, '1d 1h'],
    [86_460, '1d'],
    [-5, '0s'],
  ])('%d seconds read %s', (seconds, text) => {
    expect(read(seconds)).toBe(text)
  })
})
