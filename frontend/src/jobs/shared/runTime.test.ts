import { describe, expect, it } from 'vitest'

import { runTimeS } from './runTime'

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
