/** The one way to the API: typed by the OpenAPI schema, authenticated by the session cookie. */
import createClient, { type Middleware } from 'openapi-fetch'

import { noteAnswer, noteSilence } from './connection'
import { asApiError, toApiError } from './errors'
import type { paths } from './schema'

/** The API takes the session cookie only together with this header, which no page of another site can add. */
export const CLIENT_HEADERS = { 'X-Trellis-Client': 'dashboard' } as const

let unauthorized: () => void = () => undefined

/** What happens when the API says that the session is over. */
export function onUnauthorized(handler: () => void): void {
  unauthorized = handler
}

/** For requests that do not go through `api` (uploads, event streams). */
export function noteStatus(status: number): void {
  noteAnswer()
  if (status === 401) unauthorized()
}

const watcher: Middleware = {
  onResponse({ response, schemaPath }) {
    // Asking who is logged in, and a wrong token, are answered with 401 by design.
    if (schemaPath.startsWith('/api/v1/auth/')) noteAnswer()
    else noteStatus(response.status)
    return response
  },
  onError({ error }) {
    if (error instanceof TypeError) noteSilence()
    return error instanceof Error ? error : undefined
  },
}

export const api = createClient<paths>({ credentials: 'same-origin', headers: CLIENT_HEADERS })
api.use(watcher)

/**
 * The answer's body, or a thrown ApiError.
 *
 *     const job = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id } }, signal }))
 */
export async function unwrap<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  let answer
  try {
    answer = await call
  } catch (cause) {
    throw asApiError(cause)
  }
  if (!answer.response.ok) throw toApiError(answer.response.status, answer.error)
  return answer.data as T
}
