/** Which rows of an answer are shown only in part. */
import type { CutValue } from '../types'

export interface CutRow {
  /** Its place among the rows of the answer, from 0. */
  row: number
  columns: string[]
}

/** One entry a row, in the order of the answer. */
export function cutRows(cut: readonly CutValue[]): CutRow[] {
  const found = new Map<number, string[]>()
  for (const { row, column } of cut) found.set(row, [...(found.get(row) ?? []), column])
  return [...found].map(([row, columns]) => ({ row, columns }))
}
