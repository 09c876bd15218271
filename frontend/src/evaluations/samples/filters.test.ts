import type { LocationQuery } from 'vue-router'
import { describe, expect, it } from 'vitest'

import { isNarrowed, NO_FILTERS, readFilters, readPlace, type SampleFilters, writeFilters, writePlace } from './filters'

describe('filters of samples', () => {
  it('survive the address bar', () => {
    const filters: SampleFilters = {
      verdicts: ['wrong', 'truncated'],
      group: { kind: 'subject', name: 'astronomy' },
      search: '42',
      against: 'ev_2',
      changed: 'worse',
    }

    expect(readFilters(writeFilters(filters) as LocationQuery)).toEqual(filters)
  })

  it('leave out what is no verdict, half a group and an empty search', () => {
    expect(readFilters({ verdict: ['wrong', 'lucky'], kind: 'subject', search: '' })).toEqual({
      ...NO_FILTERS,
      verdicts: ['wrong'],
    })
  })

  it('know no change without something to compare with', () => {
    expect(readFilters({ changed: 'worse' }).changed).toBeNull()
    expect(writeFilters({ ...NO_FILTERS, changed: 'any' })).toEqual({})
  })

  it('are narrow when samples are left out, not when answers stand side by side', () => {
    expect(isNarrowed(NO_FILTERS)).toBe(false)
    expect(isNarrowed({ ...NO_FILTERS, against: 'ev_2' })).toBe(false)
    expect(isNarrowed({ ...NO_FILTERS, against: 'ev_2', changed: 'any' })).toBe(true)
    expect(isNarrowed({ ...NO_FILTERS, verdicts: ['wrong'] })).toBe(true)
  })
})

describe('the open sample', () => {
  it('is named by problem and generation', () => {
    expect(readPlace({ at: writePlace({ position: 12, number: 3 }) })).toEqual({ position: 12, number: 3 })
    expect(['', '12', '12.x', '-1.0', '1.0.0', '99999999999999.0'].map((at) => readPlace({ at }))).toEqual([
      null,
      null,
      null,
      null,
      null,
      null,
    ])
  })
})
