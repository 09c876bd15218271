/** Files on their way to the platform: they go on when the dialog is closed, and end with the tab. */
import { defineStore } from 'pinia'
import { computed, markRaw, reactive, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'
import { startTransfer, type Transfer } from '@/api/upload/transfer'

import type { DataTask, Dataset, ImportMode, Mixed } from '../types'
import { nameOfFile } from './names'
import { secondsLeft, Speedometer } from './speed'

export type SendState = 'chosen' | 'waiting' | 'sending' | 'paused' | 'failed' | 'handing-over' | 'done'

/** What is to become of a file: a dataset of its own, or rows of one that is there. */
export type Purpose =
  | { kind: 'create'; description: string; licences: string[]; mixed: Mixed }
  | { kind: 'add'; dataset: string; mixed: Mixed; mode: ImportMode; branch: string; message: string }

export type Outcome = { kind: 'dataset'; dataset: Dataset } | { kind: 'task'; task: DataTask }

export interface Sending {
  readonly key: number
  readonly file: File
  /** The dataset that its rows go to; null for one of its own. */
  readonly target: string | null
  name: string
  state: SendState
  sent: number
  rate: number | null
  error: ApiError | null
  /** Id of the complete upload. */
  upload: string | null
  purpose: Purpose | null
  outcome: Outcome | null
}

/** More at once would only share one line. */
const AT_ONCE = 2

export function etaOf(sending: Pick<Sending, 'sent' | 'rate' | 'file'>): number | null {
  return secondsLeft(sending.sent, sending.file.size, sending.rate)
}

async function handOver(sending: Sending, upload: string, purpose: Purpose): Promise<Outcome> {
  const source = { kind: 'upload', upload } as const
  if (purpose.kind === 'create') {
    const body = {
      name: sending.name.trim(),
      description: purpose.description,
      licences: purpose.licences,
      source,
      mixed: purpose.mixed,
    }
    return { kind: 'dataset', dataset: await unwrap(api.POST('/api/v1/datasets/imports', { body })) }
  }
  const { mixed, mode, branch, message } = purpose
  const call = api.POST('/api/v1/datasets/{dataset_id}/imports', {
    params: { path: { dataset_id: purpose.dataset } },
    body: { source, mixed, mode, branch, message },
  })
  return { kind: 'task', task: await unwrap(call) }
}

export const useUploadQueue = defineStore('uploads', () => {
  const items = shallowRef<Sending[]>([])
  const transfers = new Map<number, Transfer>()
  const speeds = new Map<number, Speedometer>()
  let lastKey = 0

  const active = computed(() => items.value.filter((one) => one.state !== 'chosen' && one.state !== 'done'))
  const isSending = computed(() =>
    items.value.some((one) => one.state === 'sending' || one.state === 'handing-over' || one.state === 'waiting'),
  )

  function add(files: Iterable<File>, target: string | null): Sending[] {
    const added = [...files].map((file) =>
      reactive<Sending>({
        key: ++lastKey,
        file: markRaw(file),
        target,
        name: nameOfFile(file.name),
        state: 'chosen',
        sent: 0,
        rate: null,
        error: null,
        upload: null,
        purpose: null,
        outcome: null,
      }),
    )
    items.value = [...items.value, ...added]
    return added
  }

  function rename(sending: Sending, name: string): void {
    sending.name = name
  }

  function begin(sending: Sending, purpose: Purpose): void {
    sending.purpose = purpose
    sending.state = 'waiting'
    next()
  }

  /** Starts what waits, as far as there is room. */
  function next(): void {
    let room = AT_ONCE - items.value.filter((one) => one.state === 'sending').length
    for (const one of items.value) {
      if (room <= 0) return
      if (one.state !== 'waiting' || mustWait(one)) continue
      room -= 1
      void send(one)
    }
  }

  /** Rows of one dataset go in the order of the files: one that replaces must not come after one that appends. */
  function mustWait(sending: Sending): boolean {
    if (sending.target === null) return false
    const before = items.value.slice(0, items.value.indexOf(sending))
    return before.some((one) => one.target === sending.target && one.state !== 'chosen' && one.state !== 'done')
  }

  function fail(sending: Sending, error: ApiError): void {
    sending.state = 'failed'
    sending.error = error
    sending.rate = null
    next()
  }

  async function send(sending: Sending): Promise<void> {
    sending.state = 'sending'
    sending.error = null
    if (sending.upload !== null) {
      await finish(sending)
      return
    }
    const transfer = transfers.get(sending.key) ?? newTransfer(sending)
    // A pause is not a time in which little left.
    speeds.get(sending.key)?.reset()
    try {
      await transfer.start()
    } catch (cause) {
      // The file was changed or removed on this computer after it was chosen.
      fail(sending, asFileError(cause))
    }
  }

  function newTransfer(sending: Sending): Transfer {
    const speed = new Speedometer()
    const transfer = startTransfer(sending.file, {
      onProgress: (sent) => {
        if (sending.state !== 'sending') return
        speed.note(performance.now(), sent)
        sending.sent = sent
        sending.rate = speed.rate
      },
      onDone: (upload) => {
        sending.upload = upload
        sending.sent = sending.file.size
        void finish(sending)
      },
      onError: (error) => {
        speed.reset()
        if (sending.state === 'sending') fail(sending, error)
      },
    })
    transfers.set(sending.key, transfer)
    speeds.set(sending.key, speed)
    return transfer
  }

  async function finish(sending: Sending): Promise<void> {
    if (sending.upload === null || sending.purpose === null) return
    sending.state = 'handing-over'
    sending.rate = null
    next()
    try {
      sending.outcome = await handOver(sending, sending.upload, sending.purpose)
      sending.state = 'done'
      transfers.delete(sending.key)
      speeds.delete(sending.key)
      next()
    } catch (cause) {
      const error = asApiError(cause)
      // An upload that expired is sent again.
      if (error.code === 'upload_not_found' || error.code === 'unknown_upload') forgetUpload(sending)
      fail(sending, error)
    }
  }

  function forgetUpload(sending: Sending): void {
    sending.upload = null
    sending.sent = 0
    transfers.delete(sending.key)
  }

  async function pause(sending: Sending): Promise<void> {
    sending.state = 'paused'
    sending.rate = null
    await transfers.get(sending.key)?.pause()
    next()
  }

  function resume(sending: Sending): void {
    sending.state = 'waiting'
    next()
  }

  /** Takes it off the list; what the platform has of an unfinished file goes too. */
  async function remove(sending: Sending): Promise<void> {
    const transfer = transfers.get(sending.key)
    const isUnfinished = sending.state !== 'done'
    items.value = items.value.filter((one) => one.key !== sending.key)
    transfers.delete(sending.key)
    speeds.delete(sending.key)
    next()
    if (isUnfinished) await transfer?.discard()
  }

  /** Forgets what is done and what was only chosen. */
  function clear(): void {
    items.value = items.value.filter((one) => one.state !== 'done' && one.state !== 'chosen')
  }

  function keepTab(event: BeforeUnloadEvent): void {
    event.preventDefault()
  }

  // What was sent is kept, but the person would have to choose the file again.
  watch(isSending, (is) => {
    if (is) window.addEventListener('beforeunload', keepTab)
    else window.removeEventListener('beforeunload', keepTab)
  })

  return { items, active, isSending, add, rename, begin, pause, resume, remove, clear }
})

/** A file that cannot be read any more is told like an answer of the platform. */
function asFileError(cause: unknown): ApiError {
  if (cause instanceof DOMException) return asApiError(new TypeError(cause.message))
  return asApiError(cause)
}
