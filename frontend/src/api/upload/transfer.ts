/**
 * Sends one file in pieces, after the tus protocol: a break of the connection, a pause or a reload of the page costs
 * at most the piece that was under way.
 */
import { defaultOptions, DetailedError, type PreviousUpload, Upload } from 'tus-js-client'

import { CLIENT_HEADERS, noteStatus } from '../client'
import { noteSilence } from '../connection'
import { ApiError, toApiError, UNREACHABLE } from '../errors'

const ENDPOINT = '/api/v1/uploads'
const PIECE_BYTES = 16 * 1024 ** 2
/** Waits between tries while the platform does not answer; a piece that gets through starts them anew. */
const RETRY_DELAYS_MS = [0, 1000, 3000, 5000, 10_000]
/** A larger file is not read twice to be checked as a whole. */
const HASHED_BYTES = 128 * 1024 ** 2

export interface Transfer {
  /** Goes on where the last one of this file ended, if there was one. */
  start(): Promise<void>
  pause(): Promise<void>
  /** Ends it and lets the platform forget what it has. */
  discard(): Promise<void>
}

export interface TransferEvents {
  onProgress: (sent: number) => void
  /** The id of the complete upload. */
  onDone: (upload: string) => void
  onError: (error: ApiError) => void
}

/** .../uploads/up_abc → up_abc */
export function uploadId(url: string): string {
  const path = new URL(url, window.location.href).pathname
  return path.replace(/\/+$/, '').split('/').at(-1) ?? ''
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    // A proxy's error page, say: what matters then is the status.
    if (cause instanceof SyntaxError) return null
    throw cause
  }
}

/** What broke a transfer, in the API's terms. */
export function transferError(cause: Error): ApiError {
  const response = cause instanceof DetailedError ? cause.originalResponse : null
  if (response === null) return new ApiError({ status: 0, code: UNREACHABLE, message: cause.message })
  return toApiError(response.getStatus(), readJson(response.getBody()))
}

/** Answers that another try may change. */
function isPassing(status: number): boolean {
  return status === 0 || status === 409 || status === 423 || status === 429 || status >= 500
}

/** The file's SHA-256 where the browser can tell it at once: over plain HTTP it has no `subtle`. */
async function digest(file: File): Promise<string | null> {
  if (file.size > HASHED_BYTES || globalThis.crypto.subtle === undefined) return null
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', await file.arrayBuffer()))
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The newest break of this file; only that one can be the one a person means. */
function newest(previous: readonly PreviousUpload[]): PreviousUpload | undefined {
  return [...previous].sort((a, b) => Date.parse(b.creationTime) - Date.parse(a.creationTime))[0]
}

export function startTransfer(file: File, events: TransferEvents): Transfer {
  const metadata: Record<string, string> = { filename: file.name }
  let preparing: Promise<void> | null = null
  /** Grows with every start and pause: only the newest wish counts after the file was read. */
  let wish = 0

  const upload = new Upload(file, {
    endpoint: ENDPOINT,
    metadata,
    chunkSize: PIECE_BYTES,
    retryDelays: RETRY_DELAYS_MS,
    removeFingerprintOnSuccess: true,
    headers: { ...CLIENT_HEADERS },
    onAfterResponse: (_, response) => {
      noteStatus(response.getStatus())
    },
    onShouldRetry: (error) => {
      const status = error.originalResponse?.getStatus() ?? 0
      if (status === 0) noteSilence()
      return isPassing(status)
    },
    onProgress: (sent) => {
      events.onProgress(sent)
    },
    onSuccess: () => {
      events.onDone(uploadId(upload.url ?? ''))
    },
    onError: (cause) => {
      events.onError(transferError(cause))
    },
  })

  async function prepare(): Promise<void> {
    const [previous, sha256] = [newest(await upload.findPreviousUploads()), await digest(file)]
    if (sha256 !== null) metadata.sha256 = sha256
    if (previous !== undefined) upload.resumeFromPreviousUpload(previous)
  }

  return {
    async start() {
      const mine = ++wish
      preparing ??= prepare()
      try {
        await preparing
      } catch (cause) {
        preparing = null
        throw cause
      }
      // It may have been paused, or paused and taken up again, while the file was being read.
      if (mine === wish) upload.start()
    },
    async pause() {
      wish += 1
      await upload.abort()
    },
    async discard() {
      wish += 1
      await upload.abort(upload.url !== null)
    },
  }
}

/** Files of which a part was sent before the page was left; each goes on when it is chosen again. */
export async function findInterrupted(): Promise<{ name: string; size: number; at: string }[]> {
  const found = await defaultOptions.urlStorage.findAllUploads()
  return found
    .map((one) => ({ name: one.metadata.filename ?? '', size: one.size ?? 0, at: one.creationTime }))
    .filter((one) => one.name !== '')
}
