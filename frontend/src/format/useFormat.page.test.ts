import { describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import { useFormat } from './useFormat'

describe('a number', () => {
  it.each([
    [1200, 4, '1,200'],
    [12_345, 4, '12,345'],
    [12.3456, 4, '12.35'],
    [0.12345, 3, '0.123'],
    [999.96, 4, '1,000'],
    [0, 4, '0'],
    [0.00001, 4, '1e-5'],
    [2e9, 4, '2e9'],
    [Number.NaN, 4, 'NaN'],
    [-1234.5, 3, '-1,235'],
  ])('%d with %d digits reads %s', (value, digits, text) => {
    const { it: format, end } = withSetup(useFormat)

    expect(format.number(value, digits)).toBe(text)
    end()
  })
})
