/** A pipeline on a few rows: asked for a moment after the last change, followed until the answer is there. */
import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { ApiError, asApiError } from '@/api/errors'
import type { components } from '@/api/schema'
import { isOver } from '@/datasets/tasks/useDataTask'
import { useDataText } from '@/i18n/useDataText'

import type { DataTask, Preview } from '../types'

export type PreviewRequest = components['schemas']['PreviewCreate']

const PAUSE_MS = 700
const POLL_MS = 300

/** `request` gives null while nothing can be tried; with `isAutomatic` false only `start` asks. */
export function usePreviewRun(request: () => PreviewRequest | null, isAutomatic: () => boolean) {
  const { dataProblemText } = useDataText()
  const preview = shallowRef<Preview | null>(null)
  const task = shallowRef<DataTask | null>(null)
  const error = shallowRef<ApiError | null>(null)
  const isRunning = ref(false)
  /** What is shown was made by an earlier request. */
  const shownFor = ref('')
  const wanted = computed(() => JSON.stringify(request()))
  const isStale = computed(() => preview.value !== null && shownFor.value !== wanted.value)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null

  async function cancelOld(): Promise<void> {
    const old = task.value
    if (old === null || isOver(old)) return
    try {
      await unwrap(api.POST('/api/v1/data-tasks/{task_id}/cancel', { params: { path: { task_id: old.id } } }))
    } catch (cause) {
      // It may be over by now, which is what was wanted.
      if (!(cause instanceof ApiError)) throw cause
    }
  }

  async function follow(body: PreviewRequest, mine: AbortController): Promise<DataTask> {
    let read = await unwrap(api.POST('/api/v1/pipelines/preview', { body, signal: mine.signal }))
    task.value = read
    while (!isOver(read)) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      mine.signal.throwIfAborted()
      read = await unwrap(api.GET('/api/v1/data-tasks/{task_id}', { params: { path: { task_id: read.id } }, signal: mine.signal }))
      mine.signal.throwIfAborted()
      task.value = read
    }
    return read
  }

  async function start(): Promise<void> {
    clearTimeout(timer)
    running?.abort()
    const body = request()
    if (body === null) return
    void cancelOld()
    const mine = new AbortController()
    running = mine
    const key = wanted.value
    isRunning.value = true
    error.value = null
    try {
      const done = await follow(body, mine)
      if (mine.signal.aborted) return
      if (done.state === 'succeeded') {
        // The result of a task of kind preview.
        preview.value = done.result as unknown as Preview
        shownFor.value = key
      } else if (done.state === 'failed') {
        error.value = new ApiError({ code: done.cause ?? 'task_failed', message: dataProblemText(done.cause, done.reason ?? ''), status: 0 })
      }
    } catch (cause) {
      if (mine.signal.aborted) return
      error.value = asApiError(cause)
    } finally {
      if (running === mine) {
        isRunning.value = false
        running = null
      }
    }
  }

  watch([wanted, isAutomatic], () => {
    clearTimeout(timer)
    if (request() === null) {
      running?.abort()
      isRunning.value = false
      return
    }
    if (isAutomatic() && shownFor.value !== wanted.value) timer = setTimeout(() => void start(), PAUSE_MS)
  }, { immediate: true })

  onScopeDispose(() => {
    clearTimeout(timer)
    running?.abort()
    void cancelOld()
  })

  return { preview, task, error, isRunning, isStale, start }
}
