import { describe, expect, it } from 'vitest'

import { costOf, runTimeS } from './runTime'

const START = '2026-01-01T00:00:00Z'

describe('the time that a job ran', () => {
  it('counts the attempts before this one', () => {
    const job = { earlier_run_time_s: 30, started_at: START, finished_at: '2026-01-01T00:00:10Z' }

    expect(runTimeS(job, 0)).toBe(40)
    expect(runTimeS({ ...job, started_at: null, finished_at: null }, 0)).toBe(30)
  })

  it('goes on while it runs, and is nothing before it has begun', () => {
    expect(runTimeS({ earlier_run_time_s: 0, started_at: START, finished_at: null }, Date.parse(START) + 5000)).toBe(5)
    expect(runTimeS({ earlier_run_time_s: 0, started_at: null, finished_at: null }, 0)).toBeNull()
  })
})

describe('what a job cost so far', () => {
  it('is its time on its slots at the price', () => {
    const job = { earlier_run_time_s: 1800, started_at: START, finished_at: null, resources: { gpus: 2 } }
    const price = { per_hour: 3, currency: 'EUR' }

    expect(costOf(job, price, Date.parse(START) + 1_800_000)).toBe(6)
    expect(costOf(job, null, Date.parse(START))).toBeNull()
    expect(costOf({ ...job, resources: { gpus: 0 } }, price, Date.parse(START))).toBeNull()
    expect(costOf({ ...job, earlier_run_time_s: 0, started_at: null }, price, Date.parse(START))).toBeNull()
  })
})
