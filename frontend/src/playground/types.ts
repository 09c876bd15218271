/** Names for the parts of the schema that this folder uses, and what a conversation is made of. */
import type { components } from '@/api/schema'

export type Endpoint = components['schemas']['EndpointRead']
export type EndpointState = components['schemas']['EndpointState']

export const MAX_COLUMNS = 4

/** One token as the model wrote it; `logprob` is null where the engine told none. */
export interface Token {
  text: string
  logprob: number | null
  top: readonly { text: string; logprob: number }[]
}

export type AnswerState = 'loading' | 'writing' | 'done' | 'stopped' | 'failed'

/** What a model said to one prompt. */
export interface Answer {
  state: AnswerState
  tokens: Token[]
  /** Why it failed, in the API's words; null while it has not. */
  problem: string | null
  /** "stop", "length" ...: why it ended. */
  ending: string | null
  /** From the request to the last token. */
  seconds: number | null
}

export interface Settings {
  system: string
  temperature: number
  topP: number
  maxTokens: number
  /** Null: another answer each time. */
  seed: number | null
}

export const DEFAULTS: Readonly<Settings> = { system: '', temperature: 0.7, topP: 1, maxTokens: 256, seed: 1 }

export function textOf(answer: Answer): string {
  return answer.tokens.map(({ text }) => text).join('')
}
