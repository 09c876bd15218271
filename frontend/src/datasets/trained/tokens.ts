/** Rows as a model is trained on them, read from the result of a task. */
import { isRecord } from '@/api/json'

export interface Segment {
  text: string
  /** Whose turn it belongs to; null for what the template adds between turns. */
  role: string | null
  tokens: number
  isTrained: boolean
}

export interface TrainedRow {
  row: number
  segments: Segment[]
  tokens: number
  trained: number
  isTruncated: boolean
  /** Why nothing can be learnt from it; then there are no segments. */
  problem: string | null
  problemCode: string | null
}

export interface TokenView {
  rows: TrainedRow[]
  /** Longest sequence that is kept, in tokens. */
  maxLength: number | null
  /** What is to be known of all rows, in English, and its code. */
  note: string | null
  noteCode: string | null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function readSegment(value: unknown): Segment | null {
  if (!isRecord(value) || typeof value.text !== 'string') return null
  return {
    text: value.text,
    role: typeof value.role === 'string' ? value.role : null,
    tokens: typeof value.token_count === 'number' ? value.token_count : 0,
    isTrained: value.is_trained === true,
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((whole, one) => whole + one, 0)
}

function readRow(value: unknown): TrainedRow | null {
  if (!isRecord(value) || typeof value.row !== 'number' || !Array.isArray(value.segments)) return null
  const segments = value.segments.map(readSegment).filter((one) => one !== null)
  return {
    row: value.row,
    segments,
    tokens: typeof value.token_count === 'number' ? value.token_count : sum(segments.map((one) => one.tokens)),
    trained:
      typeof value.trained_count === 'number'
        ? value.trained_count
        : sum(segments.filter((one) => one.isTrained).map((one) => one.tokens)),
    isTruncated: value.is_truncated === true,
    problem: textOf(value.problem),
    problemCode: textOf(value.problem_code),
  }
}

/** Null for what is no such result. */
export function readTokenView(result: unknown): TokenView | null {
  if (!isRecord(result) || !Array.isArray(result.rows)) return null
  return {
    rows: result.rows.map(readRow).filter((one) => one !== null),
    maxLength: typeof result.max_length === 'number' ? result.max_length : null,
    note: textOf(result.note),
    noteCode: textOf(result.note_code),
  }
}

export interface Turn {
  role: string | null
  segments: Segment[]
  tokens: number
  trained: number
}

/** Neighbouring segments of one speaker are one turn. */
export function turnsOf(segments: readonly Segment[]): Turn[] {
  const turns: Turn[] = []
  for (const segment of segments) {
    const last = turns.at(-1)
    const turn = last?.role === segment.role ? last : { role: segment.role, segments: [], tokens: 0, trained: 0 }
    if (turn !== last) turns.push(turn)
    turn.segments.push(segment)
    turn.tokens += segment.tokens
    turn.trained += segment.isTrained ? segment.tokens : 0
  }
  return turns
}
