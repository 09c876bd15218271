/** Arguments and results of tool calls in a form that people read. */
import { isRecord, parseJson } from '@/api/json'

/** Words that begin a line of a query. */
const CLAUSES =
  /\b(FROM|WHERE|(?:LEFT|RIGHT|INNER|OUTER|CROSS|FULL)(?: OUTER)? JOIN|JOIN|GROUP BY|ORDER BY|HAVING|LIMIT|OFFSET|UNION(?: ALL)?|INTERSECT|EXCEPT|VALUES|SET|AND|OR)\b/gi
/** Quoted text and comments, which are left as they are. */
const QUOTED = /('(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))/

/** A query with its clauses on lines of their own; one that has lines already stays as it was written. */
export function prettySql(sql: string): string {
  const text = sql.trim()
  if (text.includes('\n')) return text
  const parts = text.split(QUOTED).map((part, index) => {
    // Every second part is what the split was made at.
    if (index % 2 === 1) return part
    return part.replace(/\s+/g, ' ').replace(CLAUSES, (word) => `\n${/^(and|or)$/i.test(word) ? '  ' : ''}${word}`)
  })
  return parts.join('').replace(/ +\n/g, '\n').trim()
}

export function isSql(name: string, value: unknown): value is string {
  return (
    typeof value === 'string' &&
    (/^(sql|query_sql|statement)$/i.test(name) || /^\s*(select|with)\s[\s\S]*\bfrom\b/i.test(value))
  )
}

export interface Argument {
  name: string
  text: string
  kind: 'sql' | 'json' | 'plain'
}

export function argumentsOf(values: Readonly<Record<string, unknown>>): Argument[] {
  return Object.entries(values).map(([name, value]) => {
    if (isSql(name, value)) return { name, text: prettySql(value), kind: 'sql' }
    if (typeof value === 'string') return { name, text: value, kind: 'plain' }
    return { name, text: JSON.stringify(value, null, isRecord(value) ? 2 : undefined), kind: 'json' }
  })
}

export interface ResultTable {
  columns: string[]
  rows: string[][]
  /** What stands beside the rows, such as whether they were cut. */
  rest: Readonly<Record<string, unknown>>
}

export type ReadResult = { kind: 'table'; table: ResultTable } | { kind: 'json' | 'text'; text: string }

/** A result as rows where it has them, as JSON where it is some, else as it is. */
export function readResult(text: string): ReadResult {
  const value = parseJson(text)
  if (value === undefined) return { kind: 'text', text }
  const table = tableOf(value)
  if (table !== null) return { kind: 'table', table }
  return typeof value === 'string'
    ? { kind: 'text', text: value }
    : { kind: 'json', text: JSON.stringify(value, null, 2) }
}

function tableOf(value: unknown): ResultTable | null {
  if (Array.isArray(value)) return rowsOf(value, {}, null)
  if (!isRecord(value) || !Array.isArray(value.rows)) return null
  const { rows, columns, ...rest } = value
  return rowsOf(rows as unknown[], rest, Array.isArray(columns) ? columns.map(String) : null)
}

function rowsOf(
  rows: readonly unknown[],
  rest: Readonly<Record<string, unknown>>,
  names: string[] | null,
): ResultTable | null {
  if (rows.length === 0) return null
  if (rows.every(isRecord)) {
    const columns = names ?? [...new Set(rows.flatMap((row) => Object.keys(row)))]
    return { columns, rows: rows.map((row) => columns.map((column) => cell(row[column]))), rest }
  }
  if (!rows.every(Array.isArray)) return null
  const width = Math.max(...rows.map((row: unknown[]) => row.length))
  const columns = names ?? Array.from({ length: width }, (_, at) => String(at + 1))
  return { columns, rows: rows.map((row: unknown[]) => columns.map((_, at) => cell(row[at]))), rest }
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
