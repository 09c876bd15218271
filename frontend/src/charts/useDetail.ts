/** Reads the stretch that the charts of a page are zoomed to, once the reader has stopped zooming. */
import { onScopeDispose, shallowRef } from 'vue'

import type { Stretch } from './detail'

const WAIT_MS = 250

export interface Detail<T> {
  stretch: Stretch
  found: T
}

/** `read` may fail: the charts keep what they have, and are read again with the next zoom. */
export function useDetail<T>(read: (stretch: Stretch, signal: AbortSignal) => Promise<T>) {
  const detail = shallowRef<Detail<T> | null>(null)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null
  let asked = ''

  function zoomTo(stretch: Stretch | null): void {
    // Linked charts all say the same.
    const wanted = stretch === null ? '' : `${stretch.from}-${stretch.to}`
    if (wanted === asked) return
    asked = wanted
    clearTimeout(timer)
    running?.abort()
    if (stretch === null) detail.value = null
    else timer = setTimeout(() => void load(stretch), WAIT_MS)
  }

  async function load(stretch: Stretch): Promise<void> {
    const mine = new AbortController()
    running = mine
    try {
      const found = await read(stretch, mine.signal)
      if (!mine.signal.aborted) detail.value = { stretch, found }
    } catch {
      if (!mine.signal.aborted) asked = ''
    }
  }

  onScopeDispose(() => {
    clearTimeout(timer)
    running?.abort()
  })

  return { detail, zoomTo }
}
