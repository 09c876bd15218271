import { describe, expect, it } from 'vitest'

import { parseSmoothing } from './smoothing'

describe('the smoothing', () => {
  it('is what was chosen last, and the usual one where nothing was', () => {
    expect(['0', '0.25', '0.99'].map(parseSmoothing)).toEqual([0, 0.25, 0.99])
    expect([null, '', 'much', '1', '-1'].map(parseSmoothing)).toEqual([0.6, 0.6, 0.6, 0.6, 0.6])
  })
})
