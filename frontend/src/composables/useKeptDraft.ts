/** Keeps a form that somebody has begun, so that leaving the page loses nothing. */
import { type Ref, ref, watch } from 'vue'

import type { KeptDrafts } from './keptDrafts'

interface KeptForm<T> {
  drafts: KeptDrafts<T>
  /** What the form was begun at: `addressOf` of its query. */
  address: string
  /** What came back; null where nothing did. */
  kept: T | null
  /** All that the form holds. */
  state: () => T
  /** What of it is a loss; by default all. */
  essence?: (state: T) => unknown
  /** True once the form has filled in what it fills in by itself: only what differs from that is kept. */
  isSettled: Readonly<Ref<boolean>>
}

export function useKeptDraft<T>({ drafts, address, kept, state, essence = (it) => it, isSettled }: KeptForm<T>) {
  const isRestored = ref(kept !== null)
  /** How the form was before anybody touched it; null until it is known. Of a draft that came back it never is. */
  let first: string | null = null
  let isSent = false

  watch(
    [() => JSON.stringify(essence(state())), isSettled],
    ([now, hasSettled]) => {
      if (!hasSettled || isSent) return
      if (first === null && !isRestored.value) first = now
      else drafts.write(address, now === first ? null : state())
    },
    { immediate: true, flush: 'post' },
  )

  /** What the form fills in from now on is how it was before anybody touched it. */
  function startOver(): void {
    isRestored.value = false
    first = null
    drafts.write(address, null)
  }

  /** Sent: what is left of it lies with what was made. */
  function forget(): void {
    isSent = true
    drafts.write(address, null)
  }

  return { isRestored, startOver, forget }
}
