import { describe, expect, it } from 'vitest'

import { columnClock, wallClock } from './stepClock'

const JOB = { started_at: '2026-01-01T00:00:00Z', finished_at: '2026-01-01T10:00:00Z' }
const at = (hours: number) => Date.parse(JOB.started_at) + hours * 3_600_000
const moment = (hours: number) => new Date(at(hours)).toISOString()

describe('a clock', () => {
  it('lies between the steps that it tells, and goes on at the pace of the whole', () => {
    const clock = columnClock([1, 2, 10], [5, 6, 30])

    expect([1, 2, 6, 10].map((step) => clock?.(step))).toEqual([5, 6, 18, 30])
    expect(clock?.(19)).toBe(55)
    expect(clock?.(0)).toBeCloseTo(5 - 25 / 9)
    expect(clock?.(-9)).toBe(0)
  })

  it('passes over steps at which nothing was measured, and is none without a value', () => {
    expect(columnClock([1, 2, 3], [null, 4, null])?.(3)).toBe(4)
    expect(columnClock([1, 2], [null, null])).toBeNull()
    expect(columnClock([1, 2], null)).toBeNull()
  })
})

describe('the time of day', () => {
  it('is that at which the steps ended, with the time in which the run stood still', () => {
    const clock = { steps: [1, 2, 3, 4], elapsed_s: [3600, 7200, 10_800, 14_400], tokens: null }
    const wall = wallClock({ ...clock, at: [moment(1), moment(2), moment(8), moment(9)] }, JOB, 0)

    expect([1, 2, 3, 4].map((step) => wall?.(step))).toEqual([1, 2, 8, 9].map(at))
  })

  it('is counted back from the first step whose time is known, or from the end of the run', () => {
    const clock = { steps: [1, 2, 3], elapsed_s: [3600, 7200, 10_800], tokens: null }

    expect(wallClock({ ...clock, at: [null, null, moment(5)] }, JOB, 0)?.(1)).toBe(at(3))
    expect(wallClock({ ...clock, at: null }, JOB, 0)?.(1)).toBe(at(8))
    expect(wallClock({ ...clock, at: null }, { ...JOB, finished_at: null }, at(4))?.(3)).toBe(at(4))
    expect(wallClock({ ...clock, at: null, elapsed_s: null }, JOB, 0)).toBeNull()
  })
})
