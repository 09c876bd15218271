/** The bad rows of a refused upload, read from the error's details. */
import type { ApiError } from '@/api/errors'
import { isRecord } from '@/api/json'

export interface RowProblem {
  /** Line in the text file; null for a Parquet file, whose rows have no lines. */
  line: number | null
  row: number
  column: string | null
  reason: string
}

export interface RowProblems {
  problems: RowProblem[]
  /** False where the check ended before the end of the file: there may be more. */
  isComplete: boolean
}

function readProblem(value: unknown): RowProblem | null {
  if (!isRecord(value) || typeof value.reason !== 'string' || typeof value.row !== 'number') return null
  return {
    line: typeof value.line === 'number' ? value.line : null,
    row: value.row,
    column: typeof value.column === 'string' ? value.column : null,
    reason: value.reason,
  }
}

/** Null where the error is not about rows. */
export function readRowProblems(error: ApiError): RowProblems | null {
  if (error.code !== 'dataset_rows_invalid' || !Array.isArray(error.details.problems)) return null
  const problems = error.details.problems.map(readProblem).filter((one) => one !== null)
  return { problems, isComplete: error.details.is_complete === true }
}
