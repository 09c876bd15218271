import { describe, expect, it } from 'vitest'

import { ApiError } from '@/api/errors'

import { readRowProblems } from './problems'

function refusal(details: Record<string, unknown>, code = 'dataset_rows_invalid'): ApiError {
  return new ApiError({ code, status: 422, message: 'No row was taken.', details })
}

describe('the bad rows of a refused upload', () => {
  it('are named by line, column and reason', () => {
    const error = refusal({
      problems: [{ line: 7, row: 6, column: 'answer', reason: 'missing or null' }],
      is_complete: true,
    })

    expect(readRowProblems(error)).toEqual({
      problems: [{ line: 7, row: 6, column: 'answer', reason: 'missing or null' }],
      isComplete: true,
    })
  })

  it('have no line in a Parquet file', () => {
    const read = readRowProblems(refusal({ problems: [{ line: null, row: 3, column: null, reason: 'x' }], is_complete: false }))

    expect(read?.problems[0]).toEqual({ line: null, row: 3, column: null, reason: 'x' })
    expect(read?.isComplete).toBe(false)
  })

  it('are none of another error', () => {
    expect(readRowProblems(refusal({ problems: [] }, 'dataset_name_taken'))).toBeNull()
    expect(readRowProblems(refusal({}))).toBeNull()
  })
})
