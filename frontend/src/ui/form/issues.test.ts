import { describe, expect, it } from 'vitest'

import { ApiError } from '@/api/errors'

import { groupIssues, homelessIssues, issuesOfError } from './issues'

const wrong = { code: 'unknown_parameter', field: 'params.x', message: 'no', suggestion: null }

describe('issues', () => {
  it('stand at their field, errors before warnings', () => {
    const grouped = groupIssues([wrong], [{ ...wrong, code: 'odd' }])

    expect(grouped.get('params.x')?.map((issue) => [issue.severity, issue.code])).toEqual([
      ['error', 'unknown_parameter'],
      ['warning', 'odd'],
    ])
  })

  it('of fields that are not on the page are found', () => {
    const grouped = groupIssues([wrong, { ...wrong, field: 'name' }], [])

    expect(homelessIssues(grouped, (field) => field === 'name').map((issue) => issue.field)).toEqual(['params.x'])
  })
})

describe('the issues of a refused request', () => {
  it('are what the API lists', () => {
    const error = new ApiError({
      code: 'invalid_configuration',
      message: 'no',
      status: 422,
      details: { items: [wrong] },
    })

    expect(issuesOfError(error)).toEqual([wrong])
  })

  it('follow from the code where it concerns one field', () => {
    const error = new ApiError({ code: 'too_many_gpus', message: 'only 1', status: 422 })

    expect(issuesOfError(error)).toMatchObject([{ field: 'resources.gpus', message: 'only 1' }])
  })

  it('are none when the platform was away', () => {
    expect(issuesOfError(new ApiError({ code: 'unreachable', message: '', status: 0 }))).toEqual([])
  })
})
