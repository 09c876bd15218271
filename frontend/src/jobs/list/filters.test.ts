import { describe, expect, it } from 'vitest'

import { hasFilters, readFilters, writeFilters } from './filters'

describe('the filters in the address', () => {
  it('come back as they were written', () => {
    const filters = {
      states: ['running' as const, 'failed' as const],
      recipe: 'grpo',
      tag: 'night',
      group: 'seeds of trial 3',
      text: 'add',
      hasAlarms: true,
      isStarred: true,
      kind: 'export' as const,
      environment: 'env_1',
      workflow: 'wfl_1',
      model: 'mdl_1',
      dataset: 'sums',
      sweep: 'swp_1',
    }

    expect(readFilters(JSON.parse(JSON.stringify(writeFilters(filters))))).toEqual(filters)
  })

  it('take a single state as well as several', () => {
    expect(readFilters({ state: 'running' }).states).toEqual(['running'])
  })

  it('leave out a state that does not exist', () => {
    expect(readFilters({ state: ['running', 'dancing'] }).states).toEqual(['running'])
  })

  it('do not count the tab', () => {
    expect(hasFilters(readFilters({ kind: 'export' }))).toBe(false)
    expect(hasFilters(readFilters({ kind: 'export', starred: '1' }))).toBe(true)
  })

  it('are nothing for an empty address', () => {
    const filters = readFilters({})

    expect(writeFilters(filters)).toEqual({})
    expect(hasFilters(filters)).toBe(false)
    expect(filters.kind).toBe('train')
  })
})
