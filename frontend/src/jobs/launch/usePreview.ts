/** Asks the API what a request would run, a moment after the last change. */
import { onScopeDispose, ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { JobCreate, JobPreview } from '../types'

const PAUSE_MS = 300

/** `request` gives null while too little is chosen to ask for anything. */
export function usePreview(request: () => JobCreate | null) {
  const preview = shallowRef<JobPreview | null>(null)
  const error = shallowRef<ApiError | null>(null)
  /** True from a change to its answer: what is shown may not be what would run. */
  const isStale = ref(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null

  async function ask(body: JobCreate): Promise<void> {
    running?.abort()
    const mine = new AbortController()
    running = mine
    try {
      const answer = await unwrap(api.POST('/api/v1/jobs/preview', { body, signal: mine.signal }))
      if (mine.signal.aborted) return
      preview.value = answer
      error.value = null
      isStale.value = false
    } catch (cause) {
      if (mine.signal.aborted) return
      error.value = asApiError(cause)
      isStale.value = false
    }
  }

  function schedule(body: JobCreate | null): void {
    clearTimeout(timer)
    running?.abort()
    if (body === null) {
      preview.value = null
      error.value = null
      isStale.value = false
      return
    }
    isStale.value = true
    timer = setTimeout(() => void ask(body), PAUSE_MS)
  }

  // The text of the request, so that a change back asks nothing new and a deep watch is not needed.
  watch(() => JSON.stringify(request()), () => {
    schedule(request())
  }, { immediate: true })

  onScopeDispose(() => {
    clearTimeout(timer)
    running?.abort()
  })

  function retry(): void {
    schedule(request())
  }

  return { preview, error, isStale, retry }
}
