/** A chat with a model of the platform, token by token (server-sent events that answer a POST). */
import { isRecord } from '@/api/json'

import { post, readError } from './openai'
import { partsOf, samplingPartsOf } from './requestParts'
import type { Settings, Token, ToolCall } from './types'

export interface TextMessage {
  role: 'system' | 'user' | 'assistant'
  content: string
}

/** A turn of the model's that asks for calls. */
export interface CallingMessage {
  role: 'assistant'
  content: string
  tool_calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
}

/** What a call returned. */
export interface ResultMessage {
  role: 'tool'
  tool_call_id: string
  content: string
}

export type Message = TextMessage | CallingMessage | ResultMessage

/** What a model is asked: the last message is a whole turn, or the beginning of the answer. */
export interface Asked {
  messages: readonly Message[]
  isBegun: boolean
}

/** A call as a stream tells it: its name first, its arguments bit by bit. */
export interface CallPiece extends ToolCall {
  index: number
}

export interface Piece {
  tokens: Token[]
  calls: CallPiece[]
  /** Why the answer ended, in the last piece. */
  ending: string | null
  /** Ids of tokens that show no text, or not yet. */
  hidden: number[]
  /** Of what the answer is written to, in the first piece. */
  promptIds: number[] | null
  /** The name of the weights that write it: an alias may stand on others by now. */
  model: string | null
}

const NOTHING: Piece = { tokens: [], calls: [], ending: null, hidden: [], promptIds: null, model: null }

/** Of each token. */
const ALTERNATIVES = 5
const END = '[DONE]'

function readToken(value: unknown): Token | null {
  if (!isRecord(value) || typeof value.token !== 'string') return null
  const others: unknown[] = Array.isArray(value.top_logprobs) ? value.top_logprobs : []
  const top = others.flatMap((each) =>
    isRecord(each) && typeof each.token === 'string' && typeof each.logprob === 'number'
      ? [{ text: each.token, logprob: each.logprob }]
      : [],
  )
  return { text: value.token, logprob: typeof value.logprob === 'number' ? value.logprob : null, top }
}

function readCall(value: unknown, place: number): CallPiece | null {
  if (!isRecord(value)) return null
  const called = isRecord(value.function) ? value.function : {}
  return {
    index: typeof value.index === 'number' ? value.index : place,
    id: typeof value.id === 'string' ? value.id : '',
    name: typeof called.name === 'string' ? called.name : '',
    arguments: typeof called.arguments === 'string' ? called.arguments : '',
  }
}

/** Calls with one more piece. */
export function joinCalls(calls: readonly ToolCall[], pieces: readonly CallPiece[]): ToolCall[] {
  const joined = [...calls]
  for (const { index, id, name, arguments: more } of pieces) {
    const before = joined[index]
    if (before === undefined) joined.push({ id: id || `call_${String(joined.length)}`, name, arguments: more })
    else joined[index] = { id: before.id, name: before.name || name, arguments: before.arguments + more }
  }
  return joined
}

/** Tokens as `/v1/completions` tells them: lists side by side. */
function readLists({ tokens, token_logprobs: logprobs, top_logprobs: tops }: Record<string, unknown>): Token[] {
  if (!Array.isArray(tokens)) return []
  return tokens.map((text, at) => {
    const logprob: unknown = Array.isArray(logprobs) ? logprobs[at] : null
    const top: unknown = Array.isArray(tops) ? tops[at] : null
    const others = Object.entries(isRecord(top) ? top : {}).flatMap(([other, each]) =>
      typeof each === 'number' ? [{ text: other, logprob: each }] : [],
    )
    return {
      text: String(text),
      logprob: typeof logprob === 'number' ? logprob : null,
      top: others.sort((a, b) => b.logprob - a.logprob),
    }
  })
}

function readIds(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'number') : []
}

/** What one event brings; the text counts, and tokens describe it where they spell the same. */
export function readEvent(data: string): Piece {
  const event: unknown = JSON.parse(data)
  if (isRecord(event) && event.error !== undefined) throw readError(503, event)
  const choices: unknown[] = isRecord(event) && Array.isArray(event.choices) ? event.choices : []
  const choice = choices[0]
  if (!isRecord(choice)) return NOTHING
  // Chats tell the prompt's tokens beside the choices, completions in the choice.
  const ofPrompt = choice.prompt_token_ids ?? (isRecord(event) ? event.prompt_token_ids : null)
  const promptIds = Array.isArray(ofPrompt) ? readIds(ofPrompt) : null
  const ids = readIds(choice.token_ids)
  const ending = typeof choice.finish_reason === 'string' ? choice.finish_reason : null
  const called: unknown[] =
    isRecord(choice.delta) && Array.isArray(choice.delta.tool_calls) ? choice.delta.tool_calls : []
  const calls = called.map(readCall).filter((call) => call !== null)
  const written = isRecord(choice.delta) ? choice.delta.content : choice.text
  const text = typeof written === 'string' ? written : ''
  const told: unknown[] =
    isRecord(choice.logprobs) && Array.isArray(choice.logprobs.content) ? choice.logprobs.content : []
  const tokens =
    isRecord(choice.logprobs) && 'tokens' in choice.logprobs
      ? readLists(choice.logprobs)
      : told.map(readToken).filter((token) => token !== null)
  const model = isRecord(event) && typeof event.model === 'string' ? event.model : null
  const rest = { calls, ending, promptIds, model }
  if (tokens.length > 0 && tokens.map((token) => token.text).join('') === text) {
    const isTold = ids.length === tokens.length
    return {
      ...rest,
      tokens: tokens.map((token, at) => (isTold ? { ...token, ids: ids.slice(at, at + 1) } : token)),
      hidden: [],
    }
  }
  // Half of a character, or a special token that is not shown: one token stands for what was written.
  if (text === '') return { ...rest, tokens: [], hidden: ids }
  const whole = { text, logprob: tokens[0]?.logprob ?? null, top: tokens[0]?.top ?? [] }
  return { ...rest, tokens: [ids.length === 0 ? whole : { ...whole, ids }], hidden: [] }
}

/** A conversation as a text that a model without a chat template goes on with: an answer begins where its question ends. */
export function spellMessages(messages: readonly Message[]): string {
  return messages
    .map(({ content }, at) => {
      const before = messages[at - 1]?.role
      return before === undefined || before === 'user' ? content : `\n\n${content}`
    })
    .join('')
}

/** The data of the events in a body, as they come. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    rest += value
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('data:')) yield line.slice('data:'.length).trim()
    }
  }
}

interface Way {
  /** The last message is the beginning of an answer. */
  isBegun: boolean
  /** The model has no chat template: it goes on with a text. */
  isText: boolean
  /** The prompt with that beginning, token by token: its text may be cut into other tokens. Null where not known. */
  exact: readonly number[] | null
  signal: AbortSignal
}

/** The answer to messages; or, where the last one is the beginning of an answer, how that goes on. */
export async function* askModel(
  model: string,
  messages: readonly Message[],
  settings: Settings,
  { isBegun, isText, exact, signal }: Way,
): AsyncGenerator<Piece> {
  const { temperature, topP, maxTokens, seed } = settings
  const sampling = {
    temperature,
    top_p: topP,
    max_tokens: maxTokens,
    ...(seed === null ? {} : { seed }),
    ...samplingPartsOf(settings),
    stream: true,
    return_token_ids: true,
  }
  const { response_format: format, ...ofChats } = partsOf(settings)
  const parts = format === undefined ? {} : { response_format: format }
  const { body } =
    isText || exact !== null
      ? await post(
          '/v1/completions',
          { model, prompt: exact ?? spellMessages(messages), ...sampling, ...parts, logprobs: ALTERNATIVES },
          signal,
        )
      : await post(
          '/v1/chat/completions',
          {
            model,
            messages,
            ...sampling,
            ...parts,
            ...ofChats,
            ...(isBegun ? { continue_final_message: true } : {}),
            logprobs: true,
            top_logprobs: ALTERNATIVES,
          },
          signal,
        )
  if (body === null) return
  let hidden: number[] = []
  for await (const data of readEvents(body)) {
    if (data === END) return
    const piece = readEvent(data)
    const [first, ...others] = piece.tokens
    if (first?.ids !== undefined) {
      piece.tokens = [{ ...first, ids: [...hidden, ...first.ids] }, ...others]
      hidden = []
    }
    hidden.push(...piece.hidden)
    yield piece
  }
}
