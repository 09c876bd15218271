/** The map of prompts and steps as rows of cells, and the way of the arrow keys through them. */
import type { PromptMap } from '../../types'

export type MapCell = PromptMap['rows'][number]['cells'][number]

export interface Place {
  row: number
  column: number
}

/** Cells by place; null where the prompt was not sampled. */
export function layOut(map: PromptMap): (MapCell | null)[][] {
  return map.rows.map((row) => {
    const line: (MapCell | null)[] = map.columns.map(() => null)
    for (const cell of row.cells) line[cell.column] = cell
    return line
  })
}

/** Lowest and highest mean score; both 0 where there is none. */
export function rangeOf(map: PromptMap): { low: number; high: number } {
  const means = map.rows.flatMap((row) => row.cells.flatMap((cell) => (cell.mean === null ? [] : [cell.mean])))
  return means.length === 0 ? { low: 0, high: 0 } : { low: Math.min(0, ...means), high: Math.max(...means) }
}

const STEPS: Record<string, Place> = {
  ArrowLeft: { row: 0, column: -1 },
  ArrowRight: { row: 0, column: 1 },
  ArrowUp: { row: -1, column: 0 },
  ArrowDown: { row: 1, column: 0 },
}

/** The next cell that an arrow key leads to; null at the border, and for other keys. */
export function nextPlace(cells: readonly (readonly (MapCell | null)[])[], from: Place, key: string): Place | null {
  const step = STEPS[key]
  if (step === undefined) return null
  let { row, column } = from
  for (;;) {
    row += step.row
    column += step.column
    const line = cells[row]
    if (line === undefined || column < 0 || column >= line.length) return null
    if (line[column] !== null) return { row, column }
  }
}

/** The first cell, which the Tab key leads to. */
export function firstPlace(cells: readonly (readonly (MapCell | null)[])[]): Place | null {
  for (const [row, line] of cells.entries()) {
    const column = line.findIndex((cell) => cell !== null)
    if (column >= 0) return { row, column }
  }
  return null
}
