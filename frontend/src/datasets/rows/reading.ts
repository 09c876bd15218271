/** How a row reads for a person: a conversation, a question with its answer, a pair, a text. */
import { isRecord } from '@/api/json'

import type { Row, RowLayout } from '../types'

export interface Turn {
  role: string
  text: string
}

/** Columns that play no role in the format. */
export type Rest = Record<string, unknown>

export type Reading =
  | { kind: 'conversation'; turns: Turn[]; expected: string | null; rest: Rest }
  | { kind: 'pair'; prompt: Turn[]; chosen: Turn[]; rejected: Turn[]; rest: Rest }
  | { kind: 'text'; text: string; rest: Rest }
  | { kind: 'fields'; rest: Rest }

/** Any value as text: strings as they are, the rest as JSON. */
export function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  return JSON.stringify(value, null, 2)
}

function readTurn(value: unknown): Turn | null {
  if (!isRecord(value) || typeof value.role !== 'string') return null
  const content =
    isRecord(value.tool_calls) || Array.isArray(value.tool_calls) ? [value.content, value.tool_calls] : [value.content]
  return {
    role: value.role,
    text: content
      .map(asText)
      .filter((text) => text !== '')
      .join('\n'),
  }
}

/** A list of messages, or a plain text as the only turn of `role`. Null for anything else. */
export function readTurns(value: unknown, role: string): Turn[] | null {
  if (typeof value === 'string') return [{ role, text: value }]
  if (!Array.isArray(value)) return null
  const turns = value.map(readTurn)
  return turns.every((turn) => turn !== null) ? turns : null
}

function without(row: Row, used: readonly (string | undefined)[]): Rest {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !used.includes(name)))
}

function readExpected(rewardModel: unknown): string | null {
  return isRecord(rewardModel) && 'ground_truth' in rewardModel ? asText(rewardModel.ground_truth) : null
}

/** Reads a row by the columns that the server found; falls back to its fields. */
export function readRow(row: Row, dataset: RowLayout): Reading {
  const of = dataset.format_columns
  const at = (role: string): unknown => (of[role] === undefined ? undefined : row[of[role]])
  const rest = without(row, Object.values(of))
  const fields: Reading = { kind: 'fields', rest: row }

  switch (dataset.format) {
    case 'messages': {
      const turns = readTurns(at('messages'), 'user')
      return turns === null ? fields : { kind: 'conversation', turns, expected: null, rest }
    }
    case 'verl-rl': {
      const turns = readTurns(at('prompt'), 'user')
      const expected = readExpected(at('reward_model'))
      const shown = expected === null ? [of.prompt] : [of.prompt, of.reward_model]
      return turns === null ? fields : { kind: 'conversation', turns, expected, rest: without(row, shown) }
    }
    case 'prompt-answer':
      return {
        kind: 'conversation',
        turns: [
          { role: 'user', text: asText(at('prompt')) },
          { role: 'assistant', text: asText(at('answer')) },
        ],
        expected: null,
        rest,
      }
    case 'preference': {
      const chosen = readTurns(at('chosen'), 'assistant')
      const rejected = readTurns(at('rejected'), 'assistant')
      const prompt = readTurns(at('prompt') ?? [], 'user')
      return chosen === null || rejected === null || prompt === null
        ? fields
        : { kind: 'pair', prompt, chosen, rejected, rest }
    }
    case 'text':
      return { kind: 'text', text: asText(at('text')), rest }
    default:
      return fields
  }
}
