import { describe, expect, it } from 'vitest'

import { argumentsOf, prettySql, readResult } from './readable'

describe('a query', () => {
  it('has its clauses on lines of their own', () => {
    expect(
      prettySql(
        'SELECT p.name  FROM profiles p JOIN experiences e ON e.profile_id = p.id WHERE e.title LIKE ? AND e.is_current = 1 ORDER BY p.name LIMIT 10',
      ),
    ).toBe(
      'SELECT p.name\nFROM profiles p\nJOIN experiences e ON e.profile_id = p.id\nWHERE e.title LIKE ?\n  AND e.is_current = 1\nORDER BY p.name\nLIMIT 10',
    )
  })

  it('keeps what is quoted, and lines that it has', () => {
    expect(prettySql("SELECT 1 WHERE a = 'salt  AND pepper'")).toBe("SELECT 1\nWHERE a = 'salt  AND pepper'")
    expect(prettySql('SELECT 1\n  FROM t WHERE x')).toBe('SELECT 1\n  FROM t WHERE x')
    expect(prettySql("SELECT 'never closed FROM here")).toBe("SELECT 'never closed FROM here")
  })
})

describe('the arguments of a call', () => {
  it('are shown by what they are', () => {
    expect(
      argumentsOf({ sql: 'SELECT 1 FROM t', max_rows: 5, params: ['a', 1], linkedin_handle: 'ada', where: { a: 1 } }),
    ).toEqual([
      { name: 'sql', text: 'SELECT 1\nFROM t', kind: 'sql' },
      { name: 'max_rows', text: '5', kind: 'json' },
      { name: 'params', text: '["a",1]', kind: 'json' },
      { name: 'linkedin_handle', text: 'ada', kind: 'plain' },
      { name: 'where', text: '{\n  "a": 1\n}', kind: 'json' },
    ])
  })
})

describe('the result of a call', () => {
  it('with rows is a table, whatever stands beside them', () => {
    const read = readResult(
      '{"success": true, "rows": [{"name": "Ada", "skills": ["sql"]}, {"name": null, "city": "Bern"}], "row_count": 2, "truncated": false}',
    )

    expect(read).toEqual({
      kind: 'table',
      table: {
        columns: ['name', 'skills', 'city'],
        rows: [
          ['Ada', '["sql"]', ''],
          ['', '', 'Bern'],
        ],
        rest: { success: true, row_count: 2, truncated: false },
      },
    })
  })

  it('with rows as lists takes the names that come with them', () => {
    expect(readResult('{"columns": ["a", "b"], "rows": [[1, 2]]}')).toMatchObject({
      table: { columns: ['a', 'b'], rows: [['1', '2']] },
    })
    expect(readResult('[[1, 2], [3]]')).toMatchObject({
      table: {
        columns: ['1', '2'],
        rows: [
          ['1', '2'],
          ['3', ''],
        ],
      },
    })
  })

  it('without rows is JSON, and what is none is text', () => {
    expect(readResult('{"rows": [], "row_count": 0}')).toEqual({
      kind: 'json',
      text: '{\n  "rows": [],\n  "row_count": 0\n}',
    })
    expect(readResult('{"rows": [{"name": "cut off')).toEqual({ kind: 'text', text: '{"rows": [{"name": "cut off' })
    expect(readResult('no such tool')).toEqual({ kind: 'text', text: 'no such tool' })
  })
})
