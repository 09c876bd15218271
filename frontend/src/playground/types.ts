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
  /** In the model's vocabulary, with those before it that show no text; absent where the text was not the model's. */
  ids?: readonly number[]
}

/** What an answer was written to, token by token, and the messages (as JSON) that this is the prompt of. */
export interface ExactPrompt {
  ids: readonly number[]
  messages: string
}

export type AnswerState = 'loading' | 'writing' | 'done' | 'stopped' | 'failed'

/** A function that the model wants to be called; arguments are JSON, as far as the model wrote JSON. */
export interface ToolCall {
  id: string
  name: string
  arguments: string
}

/** What a model said, to a prompt or to the results of its calls. */
export interface Answer {
  state: AnswerState
  tokens: Token[]
  /** Of an answer that goes on from the beginning of another: the first of its tokens, which were there. */
  begun: readonly Token[]
  /** Null where the engine told none. */
  prompt: ExactPrompt | null
  /** What stands there instead since it was edited by hand; null: what the model wrote. */
  edited: string | null
  /** JSON was asked for: shown as it is. */
  isJson: boolean
  calls: ToolCall[]
  /** What the calls returned, one each, typed by hand; null until that was sent. */
  results: string[] | null
  /** Why it failed, in the API's words; null while it has not. */
  problem: string | null
  /** The API's word for that. */
  problemCode: string | null
  /** "stop", "length" ...: why it ended. */
  ending: string | null
  /** The name of the weights that wrote it; null where nothing told it. */
  model: string | null
  /** From the request to the last token. */
  seconds: number | null
}

export const FORMATS = ['text', 'json', 'schema'] as const
/** What an answer is to be: any text, any JSON object, or JSON by a schema. */
export type Format = (typeof FORMATS)[number]

export const THINKINGS = ['default', 'on', 'off'] as const
/** Whether models whose chat template leaves the choice think first; `default`: as the template has it. */
export type Thinking = (typeof THINKINGS)[number]

/** Bounds of the API. */
export const MAX_TOP_K = 2 ** 31 - 1
export const PENALTY = { min: -2, max: 2 } as const

export interface Settings {
  system: string
  temperature: number
  topP: number
  maxTokens: number
  /** Null: another answer each time. */
  seed: number | null
  format: Format
  /** Of the format `schema`, as typed. */
  schema: string
  /** Functions that models may call, as typed; empty: none. */
  tools: string
  thinking: Thinking
  /** Texts that end an answer, as typed: one a line, `\n` for a line break. */
  stop: string
  /** Null: all tokens. */
  topK: number | null
  minP: number
  presencePenalty: number
  frequencyPenalty: number
}

export const DEFAULTS: Readonly<Settings> = {
  system: '',
  temperature: 0.7,
  topP: 1,
  maxTokens: 256,
  seed: 1,
  format: 'text',
  schema: '',
  tools: '',
  thinking: 'default',
  stop: '',
  topK: null,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
}

export function newAnswer(isJson: boolean, begun: readonly Token[] = [], prompt: ExactPrompt | null = null): Answer {
  return {
    state: 'loading',
    tokens: [...begun],
    begun,
    prompt,
    edited: null,
    isJson,
    calls: [],
    results: null,
    problem: null,
    problemCode: null,
    ending: null,
    model: null,
    seconds: null,
  }
}

export function textOf({ edited, tokens }: { edited: string | null; tokens: readonly Token[] }): string {
  return edited ?? tokens.map(({ text }) => text).join('')
}

/** Whether the model waits for what its calls return. */
export function isWaiting({ state, calls, results }: Answer): boolean {
  return state === 'done' && calls.length > 0 && results === null
}
