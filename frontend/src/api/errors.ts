/** What went wrong with a request, in the API's own terms. */
import { isRecord } from './json'

/** Codes that the dashboard gives to failures that never reached the API, or came back unreadable. */
export const UNREACHABLE = 'unreachable'
export const UNREADABLE = 'unreadable_answer'

export type ErrorDetails = Readonly<Record<string, unknown>>

/** Every failed request ends as one of these; `code` decides the translation, `message` is the fallback. */
export class ApiError extends Error {
  readonly code: string
  /** HTTP status; 0 where there was no answer. */
  readonly status: number
  readonly details: ErrorDetails

  constructor(fields: { code: string; message: string; status: number; details?: ErrorDetails }) {
    super(fields.message)
    this.name = 'ApiError'
    this.code = fields.code
    this.status = fields.status
    this.details = fields.details ?? {}
  }

  get isUnauthorized(): boolean {
    return this.status === 401
  }

  get isNotFound(): boolean {
    return this.status === 404
  }
}

/** What a refusal lists, each in a sentence of the API's. */
export function faultsOf({ details }: ApiError): string[] {
  const items: unknown[] = Array.isArray(details.items) ? details.items : []
  return items.flatMap((item) => (isRecord(item) && typeof item.message === 'string' ? [item.message] : []))
}

/** Details are an object or a list (then under `items`), as the error's code has it. */
function readDetails(details: unknown): ErrorDetails {
  if (isRecord(details)) return details
  return details === null || details === undefined ? {} : { items: details }
}

/** Reads the body of a failed answer: `{"error", "message", "details"}`. */
export function toApiError(status: number, body: unknown): ApiError {
  if (isRecord(body) && typeof body.error === 'string') {
    return new ApiError({
      status,
      code: body.error,
      message: typeof body.message === 'string' ? body.message : body.error,
      details: readDetails(body.details),
    })
  }
  return new ApiError({ status, code: UNREADABLE, message: `HTTP ${status}` })
}

/** Turns anything thrown by a request into an ApiError; programming errors pass through unchanged. */
export function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause
  if (cause instanceof TypeError) {
    // fetch rejects with a TypeError when there is no connection.
    return new ApiError({ status: 0, code: UNREACHABLE, message: cause.message })
  }
  throw cause
}
