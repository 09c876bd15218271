/** Conditions on rows: how they are typed in, and how the address keeps them. */
import { isRecord } from '@/api/json'

import type { Column, Condition } from '../types'

export type Operator = Condition['operator']

/** A condition as it stands in the form. */
export interface DraftCondition {
  column: string
  operator: Operator
  value: string
}

const OPERATORS: readonly Operator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'contains', 'is_null', 'not_null']
const COMPARED: readonly Operator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'is_null', 'not_null']

function isNumeric(type: string): boolean {
  return type === 'integer' || type === 'number'
}

/** What can be asked of a column: lists and objects are there or not. */
export function operatorsFor(type: string | undefined): readonly Operator[] {
  if (type === undefined) return OPERATORS
  if (isNumeric(type)) return COMPARED
  if (type === 'boolean') return ['eq', 'ne', 'is_null', 'not_null']
  if (type.startsWith('list<') || type.startsWith('object{')) return ['is_null', 'not_null']
  return OPERATORS
}

export function needsValue(operator: Operator): boolean {
  return operator !== 'is_null' && operator !== 'not_null'
}

/** The value in the column's own type; null where what was typed is none. */
export function readValue(type: string | undefined, text: string): string | number | boolean | null {
  const bare = text.trim()
  if (type !== undefined && isNumeric(type)) return bare === '' || !Number.isFinite(Number(bare)) ? null : Number(bare)
  if (type === 'boolean') return bare === 'true' ? true : bare === 'false' ? false : null
  return text
}

/** Null while one of them is not complete. */
export function compile(drafts: readonly DraftCondition[], columns: readonly Column[]): Condition[] | null {
  const conditions: Condition[] = []
  for (const { column, operator, value } of drafts) {
    const type = columns.find((one) => one.name === column)?.type
    if (column === '') return null
    if (!needsValue(operator)) conditions.push({ column, operator })
    else {
      const read = readValue(type, value)
      if (read === null) return null
      conditions.push({ column, operator, value: read })
    }
  }
  return conditions
}

function readDraft(value: unknown): DraftCondition | null {
  if (!isRecord(value) || typeof value.column !== 'string' || typeof value.value !== 'string') return null
  const operator = OPERATORS.find((one) => one === value.operator)
  return operator === undefined ? null : { column: value.column, operator, value: value.value }
}

/** From the address; what is no list of conditions is none. */
export function readDrafts(text: unknown): DraftCondition[] {
  if (typeof text !== 'string' || text === '') return []
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (cause) {
    if (cause instanceof SyntaxError) return []
    throw cause
  }
  return Array.isArray(parsed) ? parsed.map(readDraft).filter((one) => one !== null) : []
}

export function writeDrafts(drafts: readonly DraftCondition[]): string | undefined {
  return drafts.length === 0 ? undefined : JSON.stringify(drafts)
}
