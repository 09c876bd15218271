import { describe, expect, it } from 'vitest'

import { COLUMNS, offered, parseColumns, serialise, shownIn, sortOf, SORTS } from './columns'
import { NO_FILTERS } from './filters'
import { nextOrder, readView, writeView } from './view'

const IDS = ['job_a', 'job_b']

describe('the list in the address', () => {
  it('comes back as it was written', () => {
    const view = {
      filters: { ...NO_FILTERS, isStarred: true, kind: 'all' as const },
      sort: 'metric_best' as const,
      isRising: true,
      grouping: 'dataset' as const,
      baseline: 'job_c',
      metric: 'val/loss',
      columns: ['state' as const, 'created' as const],
      selected: IDS,
    }

    expect(readView(JSON.parse(JSON.stringify(writeView(view))))).toEqual(view)
    expect(writeView(readView({}))).toEqual({})
  })

  it('is grouped by one thing and sorted by another', () => {
    expect(readView({ group_by: 'dataset', sort: 'metric_best', order: 'asc' })).toMatchObject({
      grouping: 'dataset',
      sort: 'metric_best',
      isRising: true,
    })
    expect(readView({ group_by: 'colour' }).grouping).toBeNull()
  })

  it('is grouped as it was in views that were saved with the order alone', () => {
    expect(readView({ grouped: '1', sort: 'recipe', order: 'asc' })).toMatchObject({
      grouping: 'recipe',
      sort: 'created',
      isRising: false,
    })
    expect(readView({ grouped: '1', sort: 'name' })).toMatchObject({ grouping: null, sort: 'name' })
  })

  it('passes over what it does not know', () => {
    expect(readView({ sort: 'colour', selected: 'job_a,,x,job_a' })).toMatchObject({
      sort: 'created',
      selected: ['job_a'],
    })
  })

  it('turns a column round, and begins words at A and figures at the greatest', () => {
    const view = readView({})

    expect(nextOrder(view, 'created')).toEqual({ sort: 'created', isRising: true })
    expect(nextOrder(view, 'name')).toEqual({ sort: 'name', isRising: true })
    expect(nextOrder(view, 'group')).toEqual({ sort: 'group', isRising: true })
    expect(nextOrder(view, 'metric_last')).toEqual({ sort: 'metric_last', isRising: false })
  })
})

describe('the columns', () => {
  it('are remembered in their own order', () => {
    expect(parseColumns(serialise(['created', 'state']))).toEqual(['state', 'created'])
    expect(parseColumns('gone,tags')).toEqual(['tags'])
    expect(parseColumns('')).toEqual([])
  })

  it('sort by what the server knows', () => {
    for (const column of COLUMNS) expect([...SORTS, null]).toContain(sortOf(column))
  })

  it('have a cost only where there is a price', () => {
    expect(offered(true, true)).toContain('cost')
    expect(offered(true, false)).not.toContain('cost')
    expect(shownIn(['cost', 'state'], true, false)).toEqual(['state'])
  })

  it('of exports and evaluations have no metrics', () => {
    expect(offered(false, true)).not.toContain('metricLast')
  })
})
