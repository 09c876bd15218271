/** Keeps a launch that somebody has begun, so that leaving the form loses nothing. */
import { type Ref, ref, watch } from 'vue'

import type { Draft } from './draft'
import { type Kept, writeKept } from './kept'
import type { SweepDraft } from './sweep/draft'

/** `isSettled` is true once the form has filled in what it fills in by itself: only what differs from that is kept. */
export function useKeptLaunch(
  address: string,
  kept: Kept | null,
  draft: Draft,
  sweep: SweepDraft,
  isSettled: Readonly<Ref<boolean>>,
) {
  const isRestored = ref(kept !== null)
  /** How the form was before anybody touched it; null until it is known. Of a draft that came back it never is. */
  let first: string | null = null
  let isSent = false

  // Whether the sweep's part is folded away is nothing to lose.
  watch(
    [() => JSON.stringify({ ...draft, sweep: { ...sweep, isOpen: false } }), isSettled],
    ([now, hasSettled]) => {
      if (!hasSettled || isSent) return
      if (first === null && !isRestored.value) first = now
      else writeKept(address, now === first ? null : { draft, sweep })
    },
    { immediate: true, flush: 'post' },
  )

  /** What the form fills in from now on is how it was before anybody touched it. */
  function startOver(): void {
    isRestored.value = false
    first = null
    writeKept(address, null)
  }

  /** Sent: what is left of it lies with the job. */
  function forget(): void {
    isSent = true
    writeKept(address, null)
  }

  return { isRestored, startOver, forget }
}
