import { describe, expect, it } from 'vitest'

import { ApiError } from '@/api/errors'

import { remediesOf } from './remedies'

const MISSING = {
  role: 'answer',
  looked_for: ['answer', 'solution'],
  reason: { en: 'No column is the answer.', zh: '没有列作为 answer。' },
}
const OFFER = {
  format: 'prompt-answer',
  columns: { prompt: 'question', answer: 'reply' },
  label: { en: 'Read as', zh: '读取' },
}

function refusal(code: string, item: Record<string, unknown>): ApiError {
  return new ApiError({ code, message: 'no', status: 422, details: { items: [item] } })
}

describe('a dataset that a dry run cannot use', () => {
  it('is told with what it lacks and how else it could be read', () => {
    const error = refusal('unsuitable_dataset', { field: 'dataset', missing: [MISSING], offers: [OFFER] })

    expect(remediesOf(error)).toEqual({ missing: [MISSING], offers: [OFFER] })
  })

  it('has nothing to show where nothing would help', () => {
    expect(
      remediesOf(refusal('unsuitable_dataset', { field: 'dataset', missing: [], offers: ['no offer'] })),
    ).toBeNull()
    expect(remediesOf(refusal('unknown_dataset', { field: 'dataset', missing: [MISSING] }))).toBeNull()
    expect(remediesOf(null)).toBeNull()
  })
})
