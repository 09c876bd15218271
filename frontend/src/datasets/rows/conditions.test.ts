import { describe, expect, it } from 'vitest'

import { ApiError } from '@/api/errors'

import { compile, isComplete, operatorsFor, readDrafts, readValue, unfitOf, writeDrafts } from './conditions'

const columns = [
  { name: 'question', type: 'text' },
  { name: 'level', type: 'integer' },
  { name: 'is_checked', type: 'boolean' },
  { name: 'messages', type: 'list<object{role: text, content: text}>' },
]

describe('what can be asked of a column', () => {
  it('depends on its type', () => {
    expect(operatorsFor('text')).toContain('contains')
    expect(operatorsFor('integer')).not.toContain('contains')
    expect(operatorsFor('boolean')).toEqual(['eq', 'ne', 'is_null', 'not_null'])
    expect(operatorsFor('list<text>')).toEqual(['is_null', 'not_null'])
  })
})

describe('a value that was typed', () => {
  it.each([
    ['integer', ' 12 ', 12],
    ['number', '1e3', 1000],
    ['integer', 'twelve', null],
    ['integer', '', null],
    ['boolean', 'true', true],
    ['boolean', 'yes', null],
    ['text', ' as it is ', ' as it is '],
    ['text', '12', '12'],
  ])('of %s: "%s" is %s', (type, text, value) => {
    expect(readValue(type, text)).toBe(value)
  })
})

describe('conditions', () => {
  it('are asked with values of the column’s type', () => {
    const drafts = [
      { column: 'level', operator: 'ge' as const, value: '3' },
      { column: 'messages', operator: 'not_null' as const, value: 'ignored' },
    ]
    expect(compile(drafts, columns)).toEqual([
      { column: 'level', operator: 'ge', value: 3 },
      { column: 'messages', operator: 'not_null' },
    ])
  })

  it('can be asked when they are complete', () => {
    const isAskable = (column: string, value: string) => isComplete({ column, operator: 'eq', value }, columns)

    expect([isAskable('', 'x'), isAskable('level', ' '), isAskable('is_checked', '')]).toEqual([false, false, false])
    expect([isAskable('level', 'x'), isAskable('question', ''), isAskable('gone', '')]).toEqual([true, true, true])
    expect(isComplete({ column: 'level', operator: 'is_null', value: '' }, columns)).toBe(true)
  })

  it('go to the API as they are where they fit no value of the column', () => {
    expect(compile([{ column: 'level', operator: 'eq', value: 'x' }], columns)).toEqual([
      { column: 'level', operator: 'eq', value: 'x' },
    ])
  })

  it('come back from the address as they were', () => {
    const drafts = [{ column: 'question', operator: 'contains' as const, value: 'a&b "c"' }]
    expect(readDrafts(writeDrafts(drafts))).toEqual(drafts)
    expect(writeDrafts([])).toBeUndefined()
  })

  it.each([
    undefined,
    '',
    '{',
    '{}',
    '[1]',
    '[{"column":"a","operator":"drop table","value":""}]',
    '[{"column":1,"operator":"eq","value":""}]',
  ])('are none in the address %s', (text) => {
    expect(readDrafts(text)).toEqual([])
  })
})

describe('what the API says against a search', () => {
  const refusal = (field: string) =>
    new ApiError({
      code: 'search_unfit',
      status: 422,
      message: 'no',
      details: { items: [{ code: 'condition_unfit', field, message: 'no' }] },
    })

  it('is told at the condition that it names', () => {
    expect(unfitOf(refusal('conditions.1.value'), 3)?.index).toBe(1)
  })

  it('is told at the only condition, and at all of several, where it names none', () => {
    expect(unfitOf(refusal('conditions'), 1)?.index).toBe(0)
    expect(unfitOf(refusal('conditions'), 2)).toMatchObject({ index: null })
  })

  it('is none of the conditions where it speaks of something else', () => {
    expect(unfitOf(refusal('text'), 1)).toBeNull()
    expect(unfitOf(new ApiError({ code: 'dataset_file_missing', status: 500, message: 'no' }), 1)).toBeNull()
    expect(unfitOf(null, 1)).toBeNull()
  })
})
