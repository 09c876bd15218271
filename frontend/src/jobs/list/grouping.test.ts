import { describe, expect, it } from 'vitest'

import type { Job } from '../types'
import { groupJobs, isGroup } from './grouping'

function job(id: string, more: object = {}): Job {
  return {
    id,
    recipe: 'sft',
    model: { id: 'm', name: 'tiny' },
    dataset: null,
    tags: [],
    state: 'running',
    ...more,
  } as unknown as Job
}

describe('groups of the list', () => {
  it('hold all jobs with the same value, also where others lie between them', () => {
    const jobs = [job('a', { tags: ['x', 'y'] }), job('b', { tags: ['z'] }), job('c', { tags: ['y', 'x'] })]

    expect(groupJobs(jobs, 'tags').map((group) => [group.value, group.jobs.map((one) => one.id)])).toEqual([
      ['x', ['a', 'c']],
      ['z', ['b']],
    ])
  })

  it('come in the order of the list', () => {
    const jobs = [job('a', { recipe: 'dpo' }), job('b'), job('c')]

    expect(groupJobs(jobs, 'recipe').map((group) => [group.value, group.jobs.map((one) => one.id)])).toEqual([
      ['dpo', ['a']],
      ['sft', ['b', 'c']],
    ])
  })

  it('have the empty text for jobs without a value', () => {
    expect(groupJobs([job('a')], 'dataset')[0]?.value).toBe('')
    expect(groupJobs([job('a')], 'tags')[0]?.value).toBe('')
    expect(
      groupJobs([job('a', { sweep: null }), job('b', { sweep: { id: 'swp_b', name: 'rates' } })], 'sweep').map(
        (group) => group.value,
      ),
    ).toEqual(['', 'swp_b'])
    expect(
      groupJobs([job('a', { group: null }), job('b', { group: 'warm up' })], 'group').map((group) => group.value),
    ).toEqual(['', 'warm up'])
    expect(groupJobs([job('a', { tags: ['x', 'y'] })], 'tags')[0]?.value).toBe('x')
  })

  it('are one for each model or dataset that was deleted', () => {
    const gone = (id: string) => ({ id, name: null })
    const jobs = [
      job('a', { model: gone('m1'), dataset: gone('d1') }),
      job('b', { model: gone('m2'), dataset: gone('d2') }),
    ]

    expect(groupJobs(jobs, 'model').map((group) => group.value)).toEqual(['m1', 'm2'])
    expect(groupJobs(jobs, 'dataset').map((group) => group.value)).toEqual(['d1', 'd2'])
  })

  it('are only those of which many jobs have the same', () => {
    expect([isGroup('recipe'), isGroup('state'), isGroup('created'), isGroup('metric_best')]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})
