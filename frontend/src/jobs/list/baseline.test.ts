import { describe, expect, it } from 'vitest'

import type { Job } from '../types'
import { compareWith, isComparable } from './baseline'

function job(id: string, last: number | null, best: number | null, mode = 'min', key = 'val/loss'): Job {
  return {
    id,
    metric: { key, mode, last, last_step: 9, best, best_step: 3 },
    fields: {},
    field_modes: {},
  } as unknown as Job
}

describe('the difference to the baseline', () => {
  it('is in percent of its value, and better in the direction of the metric', () => {
    expect(compareWith(job('a', 2, 2), job('b', 1, 3), 'metricLast')).toEqual({
      amount: -50,
      isPercent: true,
      isBetter: true,
    })
    expect(compareWith(job('a', 2, 2), job('b', 1, 3), 'metricBest')).toEqual({
      amount: 50,
      isPercent: true,
      isBetter: false,
    })
    expect(compareWith(job('a', -2, -2, 'max'), job('b', -1, -1, 'max'), 'metricLast')).toEqual({
      amount: 50,
      isPercent: true,
      isBetter: true,
    })
  })

  it('is plain where the baseline is 0', () => {
    expect(compareWith(job('a', 0, 0, 'max'), job('b', 0.3, 0, 'max'), 'metricLast')).toEqual({
      amount: 0.3,
      isPercent: false,
      isBetter: true,
    })
  })

  it('is none for the baseline itself, another metric, no value and the same value', () => {
    const base = job('a', 2, 2)

    expect(compareWith(null, job('b', 1, 1), 'metricLast')).toBeNull()
    expect(compareWith(base, base, 'metricLast')).toBeNull()
    expect(compareWith(base, job('b', 1, 1, 'min', 'train/loss'), 'metricLast')).toBeNull()
    expect(compareWith(base, job('b', null, 1), 'metricLast')).toBeNull()
    expect(compareWith(base, job('b', 2, 1), 'metricLast')).toBeNull()
    expect(
      compareWith(base, { id: 'b', metric: null, fields: {}, field_modes: {} } as unknown as Job, 'metricLast'),
    ).toBeNull()
  })

  it('is one in a column of a chosen metric, too, in that metric’s direction', () => {
    const column = 'metrics.best.val/loss'
    const run = (id: string, value: number | null) =>
      ({
        id,
        metric: null,
        fields: { [column]: value, 'parameters.lr': 1 },
        field_modes: { [column]: 'min' },
      }) as unknown as Job

    expect(compareWith(run('a', 2), run('b', 1), column)).toEqual({ amount: -50, isPercent: true, isBetter: true })
    expect(compareWith(run('a', null), run('b', 1), column)).toBeNull()
    const undirected = (id: string, value: number) => ({ ...run(id, value), field_modes: {} }) as unknown as Job
    expect(compareWith(undirected('a', 2), undirected('b', 1), column)).toEqual({
      amount: -50,
      isPercent: true,
      isBetter: null,
    })
    expect([isComparable(run('a', 2)), isComparable(run('a', null))]).toEqual([true, false])
  })
})
