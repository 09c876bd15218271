import { describe, expect, it } from 'vitest'

import { moreSeedsOf, rowsOf, settingsOf } from './seeds'

const GROUP = {
  name: 'a',
  job_ids: ['job_a'],
  seed_count: 1,
  mean: 0.5,
  deviation: null,
  values: [],
  left_out: [],
  failed: [],
}
const JOBS = [
  { id: 'job_a', name: 'a', seed: 1, can_clone: true, state: 'succeeded' },
  { id: 'job_b', name: 'b', seed: 2, can_clone: true, state: 'running' },
] as never[]
const FOUND = {
  jobs: JOBS,
  parameters: [
    { group: 'run', name: 'seed', values: { job_a: 1, job_b: 2 } },
    { group: 'params', name: 'learning_rate', values: { job_a: 0.000001, job_b: 0.000002 } },
    { group: 'params', name: 'targets', values: { job_b: ['q', 'v'] } },
  ],
} as never

describe('a group of seeds', () => {
  it('offers the seeds that it lacks, none that it has, and nothing where there are three', () => {
    expect(moreSeedsOf(GROUP, JOBS)).toEqual({ clone: 'job_a', sweep: '1', seeds: '2, 3' })
    expect(moreSeedsOf({ ...GROUP, job_ids: ['job_a', 'job_b'], seed_count: 2 }, JOBS)?.seeds).toBe('3, 4')
    expect(moreSeedsOf({ ...GROUP, seed_count: 3 }, JOBS)).toBeNull()
    expect(moreSeedsOf({ ...GROUP, job_ids: ['job_gone'] }, JOBS)).toBeNull()
  })

  it('is told apart by the settings that differ, not by the seed', () => {
    expect([settingsOf(GROUP, FOUND), settingsOf({ ...GROUP, job_ids: ['job_b'] }, FOUND)]).toEqual([
      ['learning_rate 1e-6'],
      ['learning_rate 2e-6', 'targets q, v'],
    ])
  })
})

describe('the rows of the parameter charts', () => {
  it('are runs with a value, hollow where they have not succeeded', () => {
    const rows = rowsOf(FOUND, { job_b: 0.25 }, new Map([['job_b', { color: 'red', dash: 'solid' }]]))

    expect(rows).toEqual([
      {
        id: 1,
        label: 'b',
        values: { seed: 2, learning_rate: 0.000002, targets: ['q', 'v'] },
        value: 0.25,
        color: 'red',
        isPartial: true,
      },
    ])
  })
})
