/** A pipeline on a few rows: asked for a moment after the last change, followed until the answer is there. */
import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { ApiError, asApiError } from '@/api/errors'
import type { components } from '@/api/schema'
import { endTask, isOver } from '@/datasets'
import { useDataText } from '@/i18n/useDataText'

import type { DataTask, Preview } from '../types'

export type PreviewRequest = components['schemas']['PreviewCreate']

/** The pipeline is checked before, which waits for the last change too. */
const PAUSE_MS = 400
const POLL_MS = 300

/** Waits for the next look, or until the signal. */
function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const timer = setTimeout(resolve, POLL_MS)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}

/** `request` gives null while nothing can be tried; with `isAutomatic` false only `start` asks. */
export function usePreviewRun(request: () => PreviewRequest | null, isAutomatic: () => boolean) {
  const { dataProblemText } = useDataText()
  const preview = shallowRef<Preview | null>(null)
  const error = shallowRef<ApiError | null>(null)
  const isRunning = ref(false)
  /** What is shown was made by an earlier request. */
  const shownFor = ref('')
  const wanted = computed(() => JSON.stringify(request()))
  const isStale = computed(() => preview.value !== null && shownFor.value !== wanted.value)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null

  async function follow(body: PreviewRequest, signal: AbortSignal): Promise<DataTask> {
    // Not broken off by the signal: the platform may have made the task already, and only the answer says which.
    let read = await unwrap(api.POST('/api/v1/pipelines/preview', { body }))
    try {
      while (!isOver(read)) {
        await pause(signal)
        signal.throwIfAborted()
        read = await unwrap(api.GET('/api/v1/data-tasks/{task_id}', { params: { path: { task_id: read.id } }, signal }))
      }
      return read
    } finally {
      if (signal.aborted && !isOver(read)) void end(read.id)
    }
  }

  async function end(id: string): Promise<void> {
    try {
      await endTask(id)
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }

  function take(done: DataTask, key: string): void {
    if (done.state === 'succeeded') {
      // The result of a task of kind preview.
      preview.value = done.result as unknown as Preview
      shownFor.value = key
      error.value = null
    } else if (done.state === 'failed') {
      error.value = new ApiError({
        code: done.cause ?? 'task_failed',
        message: dataProblemText(done.cause, done.reason ?? ''),
        status: 0,
      })
    }
  }

  function giveUp(): void {
    clearTimeout(timer)
    running?.abort()
    running = null
    isRunning.value = false
  }

  async function start(): Promise<void> {
    giveUp()
    const body = request()
    if (body === null) return
    const mine = new AbortController()
    running = mine
    const key = wanted.value
    isRunning.value = true
    error.value = null
    try {
      const done = await follow(body, mine.signal)
      if (!mine.signal.aborted) take(done, key)
    } catch (cause) {
      if (!mine.signal.aborted) error.value = asApiError(cause)
    } finally {
      if (running === mine) {
        running = null
        isRunning.value = false
      }
    }
  }

  watch(
    [wanted, isAutomatic],
    () => {
      clearTimeout(timer)
      if (request() === null) giveUp()
      else if (isAutomatic() && shownFor.value !== wanted.value) timer = setTimeout(() => void start(), PAUSE_MS)
    },
    { immediate: true },
  )

  onScopeDispose(giveUp)

  return { preview, error, isRunning, isStale, start }
}
