import { describe, expect, it } from 'vitest'

import { measuredRuns, type SweepRun } from './types'

function run(index: number, value: number | null, seed = 1): SweepRun {
  return {
    index,
    trial: index,
    seed,
    values: { rate: index },
    state: 'succeeded',
    job: null,
    job_state: null,
    progress: null,
    value,
    value_step: null,
    duration_s: null,
    pruned_at: null,
    problem: null,
    prune_reason: null,
  }
}

describe('the drawn runs of a sweep', () => {
  it('have a value, and the seed as a parameter where it varies', () => {
    const name = ({ index }: SweepRun) => `run ${index}`

    expect(measuredRuns([run(0, 1), run(1, null)], name).map((row) => row.values)).toEqual([{ rate: 0 }])
    expect(measuredRuns([run(0, 1, 1), run(1, 2, 2)], name)[1]).toMatchObject({
      id: 1,
      label: 'run 1',
      values: { rate: 1, seed: 2 },
      isPartial: false,
    })
  })
})
