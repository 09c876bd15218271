import { describe, expect, it } from 'vitest'

import { DEFAULT_SEARCH, METHODS, searchOf, stepOf } from './search'

describe('the search for duplicates', () => {
  it.each(METHODS)('by %s is a step and comes back from it', (method) => {
    const search = { ...DEFAULT_SEARCH, method, keep: 'longest' as const }
    expect(searchOf(stepOf(search))).toEqual(search)
  })

  it('tells an operator only what it knows', () => {
    expect(stepOf({ ...DEFAULT_SEARCH, method: 'exact' })).toEqual({
      operator: 'exact_duplicates',
      params: { keep: 'first' },
    })
    expect(stepOf({ ...DEFAULT_SEARCH, method: 'simhash', distance: 5 }).params).toEqual({ distance: 5, keep: 'first' })
  })

  it('is none where a step does something else', () => {
    expect(searchOf({ operator: 'html' })).toBeNull()
    expect(searchOf(undefined)).toBeNull()
  })
})
