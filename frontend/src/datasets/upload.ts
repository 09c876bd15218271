/** Sends a file with its progress, which fetch cannot tell. */
import { CLIENT_HEADERS, noteStatus } from '@/api/client'
import { noteSilence } from '@/api/connection'
import { ApiError, toApiError, UNREACHABLE } from '@/api/errors'

import type { Dataset } from './types'

export interface UploadRequest {
  file: File
  name: string
  description: string
}

export interface UploadOptions {
  signal: AbortSignal
  /** Share of the bytes that have left, 0 to 1. At 1 the server still checks the rows. */
  onProgress: (share: number) => void
}

const URL = '/api/v1/datasets'

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    // A proxy's error page, say: what matters then is the status.
    if (cause instanceof SyntaxError) return null
    throw cause
  }
}

export function uploadDataset(request: UploadRequest, options: UploadOptions): Promise<Dataset> {
  const form = new FormData()
  form.append('name', request.name)
  form.append('description', request.description)
  form.append('file', request.file, request.file.name)

  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest()
    call.open('POST', URL)
    for (const [name, value] of Object.entries(CLIENT_HEADERS)) call.setRequestHeader(name, value)
    call.upload.onprogress = (event) => {
      if (event.lengthComputable && event.total > 0) options.onProgress(event.loaded / event.total)
    }
    call.onload = () => {
      noteStatus(call.status)
      const body = readJson(call.responseText)
      if (call.status === 201) resolve(body as Dataset)
      else reject(toApiError(call.status, body))
    }
    call.onerror = () => {
      noteSilence()
      reject(new ApiError({ status: 0, code: UNREACHABLE, message: 'The connection broke during the upload.' }))
    }
    call.onabort = () => {
      reject(new DOMException('The upload was cancelled.', 'AbortError'))
    }
    options.signal.addEventListener('abort', () => {
      call.abort()
    })
    call.send(form)
  })
}
