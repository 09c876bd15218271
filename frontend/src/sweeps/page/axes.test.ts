import { describe, expect, it } from 'vitest'

import { showValue, type SweepRun } from '../types'
import { goodness, makeAxis, measuredRuns, wantsLog } from './axes'

function run(index: number, value: number | null, seed = 1): SweepRun {
  return { index, trial: index, seed, values: { rate: index }, state: 'succeeded', job: null, job_state: null, progress: null, value, value_step: null, duration_s: null, pruned_at: null, problem: null, prune_reason: null }
}

describe('axes', () => {
  it('places a range of decades evenly on a log scale', () => {
    const axis = makeAxis('rate', [1e-6, 1e-5, 1e-4], String)
    expect(axis.place(1e-5)).toBeCloseTo(0.5)
    expect(axis.ticks).toHaveLength(3)
  })
  it('stays linear for a narrow range and for zero', () => {
    expect(wantsLog([1, 10])).toBe(false)
    expect(wantsLog([0, 100])).toBe(false)
    expect(makeAxis('n', [2, 4, 6], String).place(4)).toBeCloseTo(0.5)
  })
  it('places words in the order in which they came, and a single value in the middle', () => {
    const axis = makeAxis('kind', ['b', 'a', 'b'], String)
    expect([axis.place('b'), axis.place('a'), axis.place('c')]).toEqual([0, 1, null])
    expect(makeAxis('one', [3], String).place(3)).toBe(0.5)
  })
  it('leaves out runs without a value and shows seeds only where they vary', () => {
    expect(measuredRuns([run(0, 1), run(1, null)]).map((each) => each.values)).toEqual([{ rate: 0 }])
    expect(measuredRuns([run(0, 1, 1), run(1, 2, 2)])[1]?.values).toEqual({ rate: 1, seed: 2 })
  })
  it('calls the best one 1 whichever way is up', () => {
    expect([goodness(1, [1, 3], 'min'), goodness(3, [1, 3], 'min'), goodness(3, [1, 3], 'max'), goodness(2, [2, 2], 'min')]).toEqual([1, 0, 1, 1])
  })
})

describe('a value', () => {
  it('is written as a person would, small ones as powers', () => {
    expect([0.00001, 3.1622776e-6, 0.05, 8, 1234567.5, 'bf16', true].map(showValue)).toEqual(['1e-5', '3.162e-6', '0.05', '8', '1.235e6', 'bf16', 'true'])
  })
})
