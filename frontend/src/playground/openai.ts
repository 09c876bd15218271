/** Requests to the API that speaks like OpenAI's, whose errors have a form of their own. */
import { CLIENT_HEADERS, noteStatus } from '@/api/client'
import { noteSilence } from '@/api/connection'
import { ApiError, UNREACHABLE, UNREADABLE } from '@/api/errors'
import { isRecord } from '@/api/json'

/** `{"error": {"message", "code"}}`, the form of every error under /v1. */
export function readError(status: number, body: unknown): ApiError {
  const error = isRecord(body) && isRecord(body.error) ? body.error : {}
  const code = typeof error.code === 'string' ? error.code : UNREADABLE
  return new ApiError({ status, code, message: typeof error.message === 'string' ? error.message : `HTTP ${status}` })
}

/** What is answered to a body; a refusal is thrown. */
export async function post(path: `/v1/${string}`, body: object, signal: AbortSignal): Promise<Response> {
  let response
  try {
    response = await fetch(path, {
      method: 'POST',
      credentials: 'same-origin',
      headers: { ...CLIENT_HEADERS, 'content-type': 'application/json' },
      body: JSON.stringify(body),
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
  if (!response.ok) throw readError(response.status, await response.json().catch(() => null))
  return response
}
