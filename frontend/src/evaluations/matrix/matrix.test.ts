import { describe, expect, it } from 'vitest'

import { type Matrix, type MatrixRow, meanRank, shadesOf, sortRows } from './matrix'

function row(name: string, ...ranked: ([number, number] | null)[]): MatrixRow {
  return {
    target: { kind: 'model', name, model: null, job: null, step: null },
    cells: ranked.map(
      (one) =>
        one && {
          rank: one[0],
          evaluation_id: `ev_${name}`,
          score: { metric: 'strict', value: one[1], low: null, high: null, stderr: null, method: 'none', n: 4 },
          created_at: '2026-01-01T00:00:00Z',
        },
    ),
  }
}

const rows = [row('a', [2, 0.5], [1, 0.9]), row('b', [1, 0.8], null), row('c', [3, 0.3], [2, 0.1])]
const names = (sorted: MatrixRow[]) => sorted.map((one) => one.target.name).join('')

describe('rows of the matrix', () => {
  it('are sorted by a column, and those without a score stay last', () => {
    expect(names(sortRows(rows, 0, true))).toBe('bac')
    expect(names(sortRows(rows, 0, false))).toBe('cab')
    expect(names(sortRows(rows, 1, true))).toBe('acb')
    expect(names(sortRows(rows, 1, false))).toBe('cab')
  })

  it('have an average rank only where every benchmark was measured', () => {
    expect(rows.map(meanRank)).toEqual([1.5, null, 2.5])
    expect(names(sortRows(rows, -1, true))).toBe('acb')
    expect(meanRank(row('none'))).toBeNull()
  })
})

describe('the colour of a cell', () => {
  const matrix = (mode: 'max' | 'min'): Matrix => ({
    columns: [0, 1].map(() => ({ mode })) as Matrix['columns'],
    rows,
    more_columns: 0,
    more_rows: 0,
  })

  it('is strongest for the best value of the column', () => {
    expect([0.3, 0.8].map(shadesOf(matrix('max'), 0))).toEqual([0, 1])
    expect([0.3, 0.8].map(shadesOf(matrix('min'), 0))).toEqual([1, 0])
  })

  it('tells nothing where all values are equal', () => {
    expect(shadesOf({ ...matrix('max'), rows: [row('a', [1, 0.5]), row('b', [1, 0.5])] }, 0)(0.5)).toBe(0)
  })
})
