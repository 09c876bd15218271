import { describe, expect, it } from 'vitest'

import { groupIssues } from '@/ui/form/issues'

import type { DataFit, JobPreview } from '../../types'
import { type Draft, emptyDraft, toRequest } from '../draft'
import { fieldsOf, isFieldOf, readingOf, setReading, shownFits } from './reading'

function preview(data: Partial<DataFit> | null, validation: Partial<DataFit> | null): JobPreview {
  return { data, validation_data: validation } as unknown as JobPreview
}

function draft(part: Partial<Draft>): Draft {
  return { ...emptyDraft(), dataset: 'ds_a', ...part }
}

function partsShown(given: JobPreview | null, of: Draft): string[] {
  return shownFits(given, of).map(({ part }) => part)
}

describe('how the data suit', () => {
  it('is told of the validation too where that is another dataset', () => {
    expect(partsShown(preview({ fits: true }, { fits: false }), draft({ validationDataset: 'ds_b' }))).toEqual([
      'training',
      'validation',
    ])
    expect(partsShown(preview({ fits: true }, { fits: true }), draft({ validationDataset: 'ds_b' }))).toEqual([
      'training',
      'validation',
    ])
  })

  it('is told once of a split of the same dataset, unless that does not fit', () => {
    expect(partsShown(preview({ fits: true }, { fits: true }), draft({ validationSplit: 'test' }))).toEqual([
      'training',
    ])
    expect(partsShown(preview({ fits: true }, { fits: false }), draft({ validationSplit: 'test' }))).toEqual([
      'training',
      'validation',
    ])
    expect(
      partsShown(preview({ fits: true }, { fits: true }), draft({ validationSplit: 'test', validationFormat: 'text' })),
    ).toEqual(['training', 'validation'])
  })

  it('is not told before anything is known', () => {
    expect(partsShown(null, draft({}))).toEqual([])
    expect(partsShown(preview(null, null), draft({}))).toEqual([])
  })
})

describe('a reading', () => {
  it('of the validation leaves that of the training data alone, and goes into the request', () => {
    const of = draft({ validationDataset: 'ds_b', columns: { prompt: 'question' } })

    setReading(of, 'validation', { format: 'prompt-answer', columns: { prompt: 'title', answer: 'body' } })

    expect(readingOf(of, 'training')).toEqual({ format: null, columns: { prompt: 'question' } })
    expect(toRequest(of, 'x')).toMatchObject({
      columns: { prompt: 'question' },
      validation_columns: { prompt: 'title', answer: 'body' },
      validation_data_format: 'prompt-answer',
    })
  })

  it('of a validation that is held out is not asked for', () => {
    const request = toRequest(draft({ validationColumns: { prompt: 'left over' }, validationFormat: 'text' }), 'x')

    expect(Object.keys(request).filter((key) => key.startsWith('validation'))).toEqual([])
  })

  it('is told what speaks against it', () => {
    const issues = groupIssues(
      [
        { code: 'a', field: 'columns.prompt', message: 'of the training', suggestion: null },
        { code: 'b', field: 'validation_columns', message: 'of the validation', suggestion: null },
      ],
      [],
    )

    expect(fieldsOf('training', issues).map((issue) => issue.code)).toEqual(['a'])
    expect(fieldsOf('validation', issues).map((issue) => issue.code)).toEqual(['b'])
    expect(isFieldOf('training', 'validation_data_format')).toBe(false)
  })
})
