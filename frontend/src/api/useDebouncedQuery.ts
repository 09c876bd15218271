/** Asks the API something that follows from what is being changed: a moment after the last change, and only the newest question counts. */
import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue'

import { type ApiError, asApiError } from './errors'

const PAUSE_MS = 300

/** `question` is plain data; it gives null while there is nothing to ask. */
export function useDebouncedQuery<Q, A>(
  question: () => Q | null,
  ask: (question: Q, signal: AbortSignal) => Promise<A>,
) {
  /** The newest good answer: after a failure, and while another one is on its way, it is that of an earlier question. */
  const answer = shallowRef<A | null>(null)
  /** Why the latest question has no answer. */
  const error = shallowRef<ApiError | null>(null)
  /** From a change to its answer, good or bad. */
  const isAsking = ref(false)
  // By its text, so that the same question in another object asks nothing new and a deep watch is not needed.
  const text = computed(() => JSON.stringify(question()))
  const answered = ref('')
  const isStale = computed(() => answer.value !== null && answered.value !== text.value)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null

  function drop(): void {
    clearTimeout(timer)
    running?.abort()
    running = null
  }

  function schedule(): void {
    drop()
    const asked = question()
    isAsking.value = asked !== null
    if (asked === null) {
      answer.value = null
      answered.value = ''
      error.value = null
      return
    }
    const key = text.value
    timer = setTimeout(() => void run(asked, key), PAUSE_MS)
  }

  async function run(asked: Q, key: string): Promise<void> {
    const mine = new AbortController()
    running = mine
    try {
      const found = await ask(asked, mine.signal)
      if (mine.signal.aborted) return
      answer.value = found
      answered.value = key
      error.value = null
    } catch (cause) {
      if (mine.signal.aborted) return
      error.value = asApiError(cause)
    } finally {
      if (running === mine) {
        running = null
        isAsking.value = false
      }
    }
  }

  watch(text, schedule, { immediate: true })
  onScopeDispose(drop)

  return { answer, error, isAsking, isStale, retry: schedule }
}
