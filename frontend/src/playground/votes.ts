/** Votes on two answers: what is sent, and how columns are mixed so that nobody knows which is which. */
import { api, unwrap } from '@/api/client'
import type { components } from '@/api/schema'

import type { TextMessage } from './stream'
import { samplingPartsOf } from './requestParts'
import type { Settings } from './types'

export type Verdict = components['schemas']['VoteVerdict']
export type WinRate = components['schemas']['WinRate']
export type Vote = components['schemas']['VoteRead']

/** Verdicts in the order of their buttons, each with its key. */
export const CHOICES: readonly { verdict: Verdict; key: string }[] = [
  { verdict: 'a', key: '1' },
  { verdict: 'b', key: '2' },
  { verdict: 'tie', key: '3' },
  { verdict: 'neither', key: '4' },
]
/** Of the next round of a blind vote. */
export const NEXT_KEY = 'r'

/** An answer that can be voted on, with what it was given. */
export interface Voted {
  /** What wrote it, not what was asked: an alias or the newest checkpoint may mean other weights by now. */
  model: string
  text: string
  messages: readonly TextMessage[]
  /** A person changed it: it says nothing of the model any more. */
  isEdited?: boolean
}

export async function sendVote({
  a,
  b,
  verdict,
  isBlind,
  settings,
}: {
  a: Voted
  b: Voted
  verdict: Verdict
  isBlind: boolean
  settings: Settings
}): Promise<Vote> {
  const { temperature, topP, maxTokens, seed } = settings
  return unwrap(
    api.POST('/api/v1/votes', {
      body: {
        messages: [...a.messages],
        a: { model: a.model, text: a.text },
        b: { model: b.model, text: b.text },
        verdict,
        is_blind: isBlind,
        settings: { temperature, top_p: topP, max_tokens: maxTokens, seed, ...samplingPartsOf(settings) },
      },
    }),
  )
}

/** Both were given the same: after different answers a conversation has gone two ways, and compares nothing. */
export function areComparable(a: Voted, b: Voted): boolean {
  return JSON.stringify(a.messages) === JSON.stringify(b.messages)
}

/** In an order by chance (Fisher and Yates); `random` is from 0 to below 1. */
export function shuffled<T>(items: readonly T[], random: () => number = Math.random): T[] {
  const mixed = [...items]
  for (let last = mixed.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    const [one, two] = [mixed[last] as T, mixed[other] as T]
    mixed[last] = two
    mixed[other] = one
  }
  return mixed
}

/** What a column is called while its model is hidden: A, B, C, D. */
export function letterOf(index: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + index)
}
