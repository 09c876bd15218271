/** A chat with a model of the platform, token by token (server-sent events that answer a POST). */
import { CLIENT_HEADERS, noteStatus } from '@/api/client'
import { noteSilence } from '@/api/connection'
import { ApiError, UNREACHABLE, UNREADABLE } from '@/api/errors'
import { isRecord } from '@/api/json'

import type { Settings, Token } from './types'

export interface Message {
  role: 'system' | 'user' | 'assistant'
  content: string
}

export interface Piece {
  tokens: Token[]
  /** Why the answer ended, in the last piece. */
  ending: string | null
}

/** Of each token. */
const ALTERNATIVES = 5
const END = '[DONE]'

/** `{"error": {"message", "code"}}`, the form of every error under /v1. */
function readError(status: number, body: unknown): ApiError {
  const error = isRecord(body) && isRecord(body.error) ? body.error : {}
  const code = typeof error.code === 'string' ? error.code : UNREADABLE
  return new ApiError({ status, code, message: typeof error.message === 'string' ? error.message : `HTTP ${status}` })
}

function readToken(value: unknown): Token | null {
  if (!isRecord(value) || typeof value.token !== 'string') return null
  const others: unknown[] = Array.isArray(value.top_logprobs) ? value.top_logprobs : []
  const top = others.flatMap((each) => (isRecord(each) && typeof each.token === 'string' && typeof each.logprob === 'number' ? [{ text: each.token, logprob: each.logprob }] : []))
  return { text: value.token, logprob: typeof value.logprob === 'number' ? value.logprob : null, top }
}

/** What one event brings; the text counts, and tokens describe it where they spell the same. */
export function readEvent(data: string): Piece {
  const event: unknown = JSON.parse(data)
  if (isRecord(event) && event.error !== undefined) throw readError(503, event)
  const choices: unknown[] = isRecord(event) && Array.isArray(event.choices) ? event.choices : []
  const choice = choices[0]
  if (!isRecord(choice)) return { tokens: [], ending: null }
  const ending = typeof choice.finish_reason === 'string' ? choice.finish_reason : null
  const text = isRecord(choice.delta) && typeof choice.delta.content === 'string' ? choice.delta.content : ''
  const told: unknown[] = isRecord(choice.logprobs) && Array.isArray(choice.logprobs.content) ? choice.logprobs.content : []
  const tokens = told.map(readToken).filter((token) => token !== null)
  if (tokens.map((token) => token.text).join('') === text) return { tokens, ending }
  // Half of a character, or a special token that is not shown: one token stands for what was written.
  return { tokens: text === '' ? [] : [{ text, logprob: tokens[0]?.logprob ?? null, top: tokens[0]?.top ?? [] }], ending }
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

export async function* askModel(model: string, messages: readonly Message[], settings: Settings, signal: AbortSignal): AsyncGenerator<Piece> {
  const { temperature, topP, maxTokens, seed } = settings
  let response
  try {
    response = await fetch('/v1/chat/completions', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { ...CLIENT_HEADERS, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages, temperature, top_p: topP, max_tokens: maxTokens, ...(seed === null ? {} : { seed }), stream: true, logprobs: true, top_logprobs: ALTERNATIVES }),
      signal,
    })
  } catch (cause) {
    if (cause instanceof TypeError) {
      noteSilence()
      throw new ApiError({ status: 0, code: UNREACHABLE, message: cause.message })
    }
    throw cause
  }
  noteStatus(response.status)
  if (!response.ok || response.body === null) throw readError(response.status, await response.json().catch(() => null))
  for await (const data of readEvents(response.body)) {
    if (data === END) return
    yield readEvent(data)
  }
}
