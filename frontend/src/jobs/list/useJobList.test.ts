import { describe, expect, it } from 'vitest'

import { commonest, toQuery } from './useJobList'
import { readView } from './view'

describe('the query of a list', () => {
  it('asks for trainings, newest first, unless something else is chosen', () => {
    expect(toQuery(readView({}))).toMatchObject({ kind: 'train', sort: 'created', order: 'desc', metric: undefined })
    expect(toQuery(readView({ kind: 'all', starred: '1' }))).toMatchObject({ kind: undefined, starred: true })
  })

  it('asks for the jobs of a group', () => {
    expect(toQuery(readView({ group: 'lr study' })).group).toBe('lr study')
    expect(toQuery(readView({})).group).toBeUndefined()
  })

  it('asks for groups, and for those of a model, dataset or sweep', () => {
    const query = { group_by: 'dataset', sort: 'metric_last', metric: 'loss', order: 'asc' }

    expect(toQuery(readView(query))).toMatchObject(query)
    expect(toQuery(readView({ model: 'tiny', dataset: 'ds_1', sweep: 'swp_1' }))).toMatchObject({
      model: 'tiny',
      dataset: 'ds_1',
      sweep: 'swp_1',
    })
  })

  it('sorts by a metric only where it is named', () => {
    expect(toQuery(readView({ sort: 'metric_best' })).sort).toBe('created')
    expect(toQuery(readView({ sort: 'metric_best', metric: 'loss' }))).toMatchObject({
      sort: 'metric_best',
      metric: 'loss',
    })
  })

  it('takes the metric that most rows show', () => {
    expect(commonest(['a', 'b', 'b'])).toBe('b')
    expect(commonest([])).toBeNull()
  })
})
