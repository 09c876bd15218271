import { describe, expect, it } from 'vitest'

import { hasFilters, NO_FILTERS, readFilters, writeFilters } from './filters'

describe('filters of the list of evaluations', () => {
  it('survive the address bar', () => {
    const filters = {
      states: ['running' as const, 'failed' as const],
      benchmark: 'gsm8k',
      model: 'mdl_1',
      job: 'job_1',
    }

    expect(readFilters(writeFilters(filters) as Record<string, string>)).toEqual(filters)
  })

  it('leave out what is no state and what is empty', () => {
    expect(readFilters({ state: ['running', 'dancing'], benchmark: '' })).toEqual({
      ...NO_FILTERS,
      states: ['running'],
    })
    expect(hasFilters(readFilters({ tab: 'samples' }))).toBe(false)
  })
})
