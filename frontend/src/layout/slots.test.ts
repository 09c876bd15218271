import { describe, expect, it } from 'vitest'

import { countRunning } from './slots'

describe('running jobs', () => {
  it('that hold no slot are not counted among those that do', () => {
    expect(countRunning([1, 0, 2, 0].map((gpus) => ({ resources: { gpus } })))).toEqual({ withSlot: 2, withoutSlot: 2 })
    expect(countRunning([])).toEqual({ withSlot: 0, withoutSlot: 0 })
  })
})
