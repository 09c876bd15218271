/** Reads something from the server and keeps it fresh while the page is visible. */
import { useEventListener } from '@vueuse/core'
import { onScopeDispose, readonly, ref, shallowRef, watch } from 'vue'
import type { Ref, ShallowRef, WatchSource } from 'vue'

import { connection } from './connection'
import { type ApiError, asApiError } from './errors'

export interface ResourceOptions<T> {
  /** Time between the end of one read and the start of the next; null or absent: read once. May depend on what was read. */
  intervalMs?: number | null | ((data: T | null) => number | null)
  /** A change of any of these drops what was read and reads again. */
  watch?: WatchSource | WatchSource[]
  /** Called when a change of `watch` drops what was read. */
  onReset?: () => void
}

export interface Resource<T> {
  data: ShallowRef<T | null>
  /** The latest read's failure; `data` keeps the last good answer meanwhile. */
  error: Readonly<ShallowRef<ApiError | null>>
  /** True until the first answer, good or bad. */
  isLoading: Readonly<Ref<boolean>>
  loadedAt: Readonly<ShallowRef<Date | null>>
  refresh: () => Promise<void>
  /** Keep what a change answered; a read that began before it is dropped. */
  set(answer: T): void
}

/** A read that keeps failing waits longer, up to this many intervals. */
const MAX_BACKOFF = 3

function isAbort(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'AbortError'
}

export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  options: ResourceOptions<T> = {},
): Resource<T> {
  const data = shallowRef<T | null>(null)
  const error = shallowRef<ApiError | null>(null)
  const isLoading = ref(true)
  const loadedAt = shallowRef<Date | null>(null)

  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null
  let failures = 0
  let isDisposed = false

  function currentInterval(): number | null {
    const wish = options.intervalMs ?? null
    return typeof wish === 'function' ? wish(data.value) : wish
  }

  function schedule(): void {
    clearTimeout(timer)
    const interval = currentInterval()
    if (isDisposed || interval === null || document.hidden) return
    timer = setTimeout(() => void refresh(), interval * Math.min(2 ** failures, MAX_BACKOFF))
  }

  async function refresh(): Promise<void> {
    clearTimeout(timer)
    running?.abort()
    const mine = new AbortController()
    running = mine
    try {
      const answer = await load(mine.signal)
      if (mine.signal.aborted) return
      data.value = answer
      error.value = null
      loadedAt.value = new Date()
      failures = 0
    } catch (cause) {
      if (mine.signal.aborted || isAbort(cause)) return
      error.value = asApiError(cause)
      failures += 1
    } finally {
      if (running === mine) {
        running = null
        isLoading.value = false
        schedule()
      }
    }
  }

  function set(answer: T): void {
    running?.abort()
    running = null
    data.value = answer
    error.value = null
    isLoading.value = false
    loadedAt.value = new Date()
    schedule()
  }

  function onVisibility(): void {
    if (document.hidden) clearTimeout(timer)
    else if (running === null && currentInterval() !== null) void refresh()
  }

  function retryAtOnce(): void {
    if (running === null && error.value !== null && !document.hidden) void refresh()
  }

  useEventListener(document, 'visibilitychange', onVisibility)
  useEventListener(window, 'online', retryAtOnce)
  // Another read got through: whatever failed meanwhile can be read again.
  watch(connection.state, (state) => {
    if (state === 'online') retryAtOnce()
  })
  onScopeDispose(() => {
    isDisposed = true
    clearTimeout(timer)
    running?.abort()
  })

  if (options.watch !== undefined) {
    watch(options.watch, () => {
      data.value = null
      error.value = null
      isLoading.value = true
      options.onReset?.()
      void refresh()
    })
  }
  watch(currentInterval, () => {
    if (running === null) schedule()
  })

  void refresh()
  return {
    data,
    error,
    isLoading: readonly(isLoading),
    loadedAt,
    refresh,
    set,
  }
}
