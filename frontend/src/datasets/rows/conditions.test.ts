import { describe, expect, it } from 'vitest'

import { compile, operatorsFor, readDrafts, readValue, writeDrafts } from './conditions'

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
    expect(compile(drafts, columns)).toEqual([{ column: 'level', operator: 'ge', value: 3 }, { column: 'messages', operator: 'not_null' }])
  })

  it('are not asked while one is incomplete', () => {
    expect(compile([{ column: '', operator: 'eq', value: 'x' }], columns)).toBeNull()
    expect(compile([{ column: 'level', operator: 'eq', value: 'x' }], columns)).toBeNull()
  })

  it('come back from the address as they were', () => {
    const drafts = [{ column: 'question', operator: 'contains' as const, value: 'a&b "c"' }]
    expect(readDrafts(writeDrafts(drafts))).toEqual(drafts)
    expect(writeDrafts([])).toBeUndefined()
  })

  it.each([undefined, '', '{', '{}', '[1]', '[{"column":"a","operator":"drop table","value":""}]', '[{"column":1,"operator":"eq","value":""}]'])('are none in the address %s', (text) => {
    expect(readDrafts(text)).toEqual([])
  })
})
