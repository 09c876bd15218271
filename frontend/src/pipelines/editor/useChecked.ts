/** Asks the API what is wrong with a pipeline, a moment after the last change. */
import { onScopeDispose, ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { Pipeline, PipelineChecked } from '../types'

const PAUSE_MS = 300

export interface CheckRequest {
  pipeline: Pipeline
  dataset: string | null
  version: string | null
}

/** `request` gives null while there is nothing to check. */
export function useChecked(request: () => CheckRequest | null) {
  const checked = shallowRef<PipelineChecked | null>(null)
  const error = shallowRef<ApiError | null>(null)
  /** True from a change to its answer. */
  const isStale = ref(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null

  async function ask(asked: CheckRequest): Promise<void> {
    const mine = new AbortController()
    running = mine
    try {
      const body = { pipeline: { ...asked.pipeline }, dataset: asked.dataset, version: asked.version }
      const answer = await unwrap(api.POST('/api/v1/pipelines/validate', { body, signal: mine.signal }))
      if (mine.signal.aborted) return
      checked.value = answer
      error.value = null
      isStale.value = false
    } catch (cause) {
      if (mine.signal.aborted) return
      error.value = asApiError(cause)
      isStale.value = false
    }
  }

  function schedule(): void {
    clearTimeout(timer)
    running?.abort()
    const asked = request()
    if (asked === null) {
      checked.value = null
      error.value = null
      isStale.value = false
      return
    }
    isStale.value = true
    timer = setTimeout(() => void ask(asked), PAUSE_MS)
  }

  watch(() => JSON.stringify(request()), schedule, { immediate: true })
  onScopeDispose(() => {
    clearTimeout(timer)
    running?.abort()
  })

  return { checked, error, isStale, retry: schedule }
}
