/** A chat with a model of the platform, token by token (server-sent events that answer a POST). */
import { isRecord } from '@/api/json'

import { post, readError } from './openai'
import { partsOf } from './requestParts'
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

/** A call as a stream tells it: its name first, its arguments bit by bit. */
export interface CallPiece extends ToolCall {
  index: number
}

export interface Piece {
  tokens: Token[]
  calls: CallPiece[]
  /** Why the answer ended, in the last piece. */
  ending: string | null
}

/** Of each token. */
const ALTERNATIVES = 5
const END = '[DONE]'

function readToken(value: unknown): Token | null {
  if (!isRecord(value) || typeof value.token !== 'string') return null
  const others: unknown[] = Array.isArray(value.top_logprobs) ? value.top_logprobs : []
  const top = others.flatMap((each) => (isRecord(each) && typeof each.token === 'string' && typeof each.logprob === 'number' ? [{ text: each.token, logprob: each.logprob }] : []))
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

/** What one event brings; the text counts, and tokens describe it where they spell the same. */
export function readEvent(data: string): Piece {
  const event: unknown = JSON.parse(data)
  if (isRecord(event) && event.error !== undefined) throw readError(503, event)
  const choices: unknown[] = isRecord(event) && Array.isArray(event.choices) ? event.choices : []
  const choice = choices[0]
  if (!isRecord(choice)) return { tokens: [], calls: [], ending: null }
  const ending = typeof choice.finish_reason === 'string' ? choice.finish_reason : null
  const called: unknown[] = isRecord(choice.delta) && Array.isArray(choice.delta.tool_calls) ? choice.delta.tool_calls : []
  const calls = called.map(readCall).filter((call) => call !== null)
  const text = isRecord(choice.delta) && typeof choice.delta.content === 'string' ? choice.delta.content : ''
  const told: unknown[] = isRecord(choice.logprobs) && Array.isArray(choice.logprobs.content) ? choice.logprobs.content : []
  const tokens = told.map(readToken).filter((token) => token !== null)
  if (tokens.map((token) => token.text).join('') === text) return { tokens, calls, ending }
  // Half of a character, or a special token that is not shown: one token stands for what was written.
  return { tokens: text === '' ? [] : [{ text, logprob: tokens[0]?.logprob ?? null, top: tokens[0]?.top ?? [] }], calls, ending }
}

/** The same of a completion, whose tokens stand in lists of their own. */
export function readTextEvent(data: string): Piece {
  const event: unknown = JSON.parse(data)
  const choice: unknown = isRecord(event) && Array.isArray(event.choices) ? event.choices[0] : null
  if (!isRecord(choice)) return readEvent(data)
  const told = isRecord(choice.logprobs) ? choice.logprobs : {}
  const [tokens, logprobs, tops] = [told.tokens, told.token_logprobs, told.top_logprobs].map((each): unknown[] => (Array.isArray(each) ? each : []))
  const content = (tokens ?? []).map((token, at) => ({
    token,
    logprob: logprobs?.[at],
    top_logprobs: isRecord(tops?.[at]) ? Object.entries(tops[at]).map(([other, logprob]) => ({ token: other, logprob })) : [],
  }))
  return readEvent(JSON.stringify({ choices: [{ delta: { content: choice.text }, logprobs: { content }, finish_reason: choice.finish_reason }] }))
}

/** A conversation as a text that a model without a chat template goes on with: an answer begins where its question ends. */
export function spellMessages(messages: readonly Message[]): string {
  return messages.map(({ content }, at) => {
    const before = messages[at - 1]?.role
    return before === undefined || before === 'user' ? content : `\n\n${content}`
  }).join('')
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
  /** The last message is the beginning of the answer. */
  isBegun: boolean
  /** The model has no chat template: it goes on with a text. */
  isText: boolean
  signal: AbortSignal
}

/** The answer to messages; or, where the last one is the beginning of an answer, how that goes on. */
export async function* askModel(model: string, messages: readonly Message[], settings: Settings, { isBegun, isText, signal }: Way): AsyncGenerator<Piece> {
  const { temperature, topP, maxTokens, seed } = settings
  const sampling = { temperature, top_p: topP, max_tokens: maxTokens, ...(seed === null ? {} : { seed }), stream: true }
  const { response_format: format, ...ofChats } = partsOf(settings)
  const parts = format === undefined ? {} : { response_format: format }
  const { body } = isText
    ? await post('/v1/completions', { model, prompt: spellMessages(messages), ...sampling, ...parts, logprobs: ALTERNATIVES }, signal)
    : await post('/v1/chat/completions', { model, messages, ...sampling, ...parts, ...ofChats, ...(isBegun ? { continue_final_message: true } : {}), logprobs: true, top_logprobs: ALTERNATIVES }, signal)
  if (body === null) return
  for await (const data of readEvents(body)) {
    if (data === END) return
    yield isText ? readTextEvent(data) : readEvent(data)
  }
}
