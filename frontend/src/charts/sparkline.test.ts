import { describe, expect, it } from 'vitest'

import { sparklinePath } from './sparkline'

describe('a sparkline', () => {
  it('is empty without values', () => {
    expect(sparklinePath([], 80, 20)).toBe('')
  })

  it('runs from the lower left to the upper right for a rising curve', () => {
    expect(sparklinePath([0, 1], 84, 24)).toBe('M2.0 22.0L82.0 2.0')
  })

  it('breaks where a value is missing', () => {
    expect(sparklinePath([0, 1, NaN, 1, 0], 84, 24).match(/M/g)).toHaveLength(2)
  })

  it('draws a constant curve through the middle', () => {
    expect(sparklinePath([3, 3], 84, 24)).toBe('M2.0 12.0L82.0 12.0')
  })
})
