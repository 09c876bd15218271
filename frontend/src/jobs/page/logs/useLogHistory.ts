/** Fetches the lines that were printed before the page began to listen: the end first, the rest behind it. */
import { onScopeDispose, ref, shallowRef } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { LiveRun } from '../../live/liveRun'

const PAGE = 5000
/** Fetched unasked, so that a search finds them; older lines are a click away. */
const UNASKED = 100_000

export function useLogHistory(run: LiveRun) {
  const isLoading = ref(true)
  const isLoadingEarlier = ref(false)
  const error = shallowRef<ApiError | null>(null)
  const abort = new AbortController()
  onScopeDispose(() => {
    abort.abort()
  })

  /** Number of the oldest line that is here; 1 when all are. */
  const oldest = ref(run.log.lines[0]?.line ?? 0)

  async function fetchPage(after: number | undefined, limit: number): Promise<number> {
    const page = await unwrap(
      api.GET('/api/v1/jobs/{job_id}/logs', {
        params: { path: { job_id: run.jobId }, query: { after, limit } },
        signal: abort.signal,
      }),
    )
    if (run.log.add(page.lines)) run.noteLines()
    oldest.value = run.log.lines[0]?.line ?? 0
    return page.total_lines
  }

  /** One page before the oldest line; false when there is none. */
  async function fetchEarlier(): Promise<boolean> {
    const first = oldest.value
    if (first <= 1) return false
    const after = Math.max(0, first - 1 - PAGE)
    await fetchPage(after, first - 1 - after)
    // The buffer may be full: then nothing older stays in it.
    return oldest.value < first
  }

  async function guarded(work: () => Promise<void>): Promise<void> {
    error.value = null
    try {
      await work()
    } catch (cause) {
      if (abort.signal.aborted) return
      error.value = asApiError(cause)
    }
  }

  async function load(): Promise<void> {
    await guarded(async () => {
      await fetchPage(undefined, PAGE)
      isLoading.value = false
      isLoadingEarlier.value = true
      while (run.log.lines.length < UNASKED && !abort.signal.aborted && (await fetchEarlier())) {
        // One page after the other: the end is on the screen already.
      }
    })
    isLoading.value = false
    isLoadingEarlier.value = false
  }

  async function loadEarlier(): Promise<void> {
    isLoadingEarlier.value = true
    await guarded(async () => {
      await fetchEarlier()
    })
    isLoadingEarlier.value = false
  }

  /** Everything that the server has and the browser can hold. */
  async function loadAll(): Promise<void> {
    isLoadingEarlier.value = true
    await guarded(async () => {
      while (!abort.signal.aborted && (await fetchEarlier())) {
        // Until the first line.
      }
    })
    isLoadingEarlier.value = false
  }

  void load()
  return { isLoading, isLoadingEarlier, error, oldest, load, loadEarlier, loadAll }
}
