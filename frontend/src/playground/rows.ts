/** What is kept of conversations: rows that models learn from, in a dataset that is new or there already. */
import { api, unwrap } from '@/api/client'
import type { Dataset } from '@/datasets'

import type { Message } from './stream'

/** A conversation whose last message is an answer, or two answers to the same conversation. */
export type Saved =
  | { kind: 'conversation'; messages: readonly Message[]; tools: readonly unknown[] | null }
  | { kind: 'pair'; prompt: readonly Message[]; sides: readonly { label: string; text: string }[] }

export type Row =
  | { messages: Message[]; tools?: Record<string, unknown>[] }
  | { prompt: Message[]; chosen: Message[]; rejected: Message[] }

/** Where rows go to. */
export interface Place {
  kind: 'new' | 'existing'
  /** Of the new one. */
  name: string
  /** Of the one that is there. */
  id: string | null
}

/** The row of a conversation whose answer reads `text`; of a pair the `better`th answer is the chosen one. */
export function rowOf(saved: Saved, { text, better }: { text: string; better: number }): Row {
  if (saved.kind === 'pair') {
    const [chosen = '', rejected = ''] = [saved.sides[better]?.text, saved.sides[1 - better]?.text]
    return {
      prompt: [...saved.prompt],
      chosen: [{ role: 'assistant', content: chosen }],
      rejected: [{ role: 'assistant', content: rejected }],
    }
  }
  const last = saved.messages.at(-1)
  const tools = saved.tools === null ? {} : { tools: saved.tools as Record<string, unknown>[] }
  return {
    messages: [...saved.messages.slice(0, -1), ...(last === undefined ? [] : [{ ...last, content: text }])],
    ...tools,
  }
}

/** Whether rows of a kind can be added to a dataset. */
export function takes({ state, format }: Pick<Dataset, 'state' | 'format'>, kind: Saved['kind']): boolean {
  return state === 'ready' && format === (kind === 'pair' ? 'preference' : 'messages')
}

/** Keep a row; the id of the dataset that it went to. */
export async function keepRow(row: Row, place: Place, message: string): Promise<string> {
  const rows = [row] as never
  if (place.kind === 'new')
    return (
      await unwrap(api.POST('/api/v1/datasets/rows', { body: { name: place.name.trim(), description: '', rows } }))
    ).id
  const id = place.id ?? ''
  await unwrap(
    api.POST('/api/v1/datasets/{dataset_id}/rows', {
      params: { path: { dataset_id: id } },
      body: { branch: 'main', message, rows },
    }),
  )
  return id
}
