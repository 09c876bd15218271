/** The matrix as it is read: rows in an order of choice, and how strongly a cell is coloured. */
import type { components } from '@/api/schema'

export type Matrix = components['schemas']['MatrixRead']
export type MatrixRow = components['schemas']['MatrixRow']
export type MatrixColumn = components['schemas']['MatrixColumn']

/** One label on two datasets is two columns. */
export function keyOf({ benchmark }: MatrixColumn): string {
  return benchmark.dataset == null ? benchmark.label : `${benchmark.label}/${benchmark.dataset.id}`
}

/** The average rank; null for a row that lacks a score: its average would be of other benchmarks. */
export function meanRank(row: MatrixRow): number | null {
  const ranks = row.cells.map((cell) => cell?.rank ?? null)
  if (ranks.length === 0 || ranks.includes(null)) return null
  return ranks.reduce<number>((sum, rank) => sum + (rank ?? 0), 0) / ranks.length
}

/** By the rank in a column (or on average, column -1), the best first; rows without one come last either way. */
export function sortRows(rows: readonly MatrixRow[], column: number, isBestFirst: boolean): MatrixRow[] {
  const rankOf = (row: MatrixRow) => (column < 0 ? meanRank(row) : (row.cells[column]?.rank ?? null))
  const sign = isBestFirst ? 1 : -1
  return [...rows].sort((a, b) => {
    const [one, other] = [rankOf(a), rankOf(b)]
    if (one === null || other === null) return Number(one === null) - Number(other === null)
    return sign * (one - other)
  })
}

/** For the values of a column: from 0 for the worst to 1 for the best; 0 where all are equal. */
export function shadesOf(matrix: Matrix, column: number): (value: number) => number {
  const values = matrix.rows.flatMap((row) => (row.cells[column] == null ? [] : [row.cells[column].score.value]))
  const [low, high] = [Math.min(...values), Math.max(...values)]
  if (high <= low) return () => 0
  const isFewBest = matrix.columns[column]?.mode === 'min'
  return (value) => (isFewBest ? high - value : value - low) / (high - low)
}
