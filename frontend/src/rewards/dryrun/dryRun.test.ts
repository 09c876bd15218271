import { describe, expect, it } from 'vitest'

import { binsOf } from './dryRun'

describe('the histogram of a probe', () => {
  it('has a bar between every two edges', () => {
    expect(binsOf([0, 0.5, 1], [3, 1])).toEqual([
      { from: 0, to: 0.5, count: 3 },
      { from: 0.5, to: 1, count: 1 },
    ])
  })
})
