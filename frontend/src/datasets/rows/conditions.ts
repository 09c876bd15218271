/** Conditions on rows: how they are typed in, and how the address keeps them. */
import type { ApiError } from '@/api/errors'
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

function typeOf(draft: DraftCondition, columns: readonly Column[]): string | undefined {
  return columns.find((one) => one.name === draft.column)?.type
}

/** Whether it can be asked; whether its value fits the column is for the API to say. */
export function isComplete(draft: DraftCondition, columns: readonly Column[]): boolean {
  const type = typeOf(draft, columns)
  const isTyped = type !== undefined && (isNumeric(type) || type === 'boolean')
  return draft.column !== '' && (!needsValue(draft.operator) || !isTyped || draft.value.trim() !== '')
}

/** What is typed and fits no value of the column goes as it is: the API tells why nothing can be found by it. */
export function compile(drafts: readonly DraftCondition[], columns: readonly Column[]): Condition[] {
  return drafts.map((draft) => {
    const { column, operator, value } = draft
    return needsValue(operator)
      ? { column, operator, value: readValue(typeOf(draft, columns), value) ?? value }
      : { column, operator }
  })
}

/** What is wrong with the conditions of a search, and with which of them. */
export interface Unfit {
  error: ApiError
  /** Null where it is not known which. */
  index: number | null
}

/** `conditions`, or `conditions.2.value` where the API knows which of them it is. */
const FIELD = /^conditions(?:\.(\d+))?/

/** Null where the search failed for another reason. */
export function unfitOf(error: ApiError | null, count: number): Unfit | null {
  if (error === null || count === 0) return null
  const { items } = error.details
  const first: unknown = Array.isArray(items) ? items[0] : null
  const place = isRecord(first) && typeof first.field === 'string' ? FIELD.exec(first.field) : null
  if (place === null) return null
  const [, number] = place
  if (number !== undefined) return { error, index: Number(number) }
  return { error, index: count === 1 ? 0 : null }
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
