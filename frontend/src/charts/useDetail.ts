/** Reads the stretch that the charts of a page are zoomed to, once the reader has stopped zooming. */
import { onScopeDispose, shallowRef, watch } from 'vue'

import type { Stretch } from './detail'

const WAIT_MS = 250

/** Of the x axis. */
type Range = [number, number]

interface Detail<T> {
  stretch: Stretch
  found: T
}

interface Zoomed<T> {
  /** The steps in a range; null where no line is thinned out there. */
  stretchIn: (range: Range) => Stretch | null
  /** May fail: the charts keep what they have, and are read again with the next zoom. */
  read: (stretch: Stretch, signal: AbortSignal) => Promise<T>
  /** Names the curves that are charted: others are read as well. */
  charted: () => string
}

export function useDetail<T>({ stretchIn, read, charted }: Zoomed<T>) {
  const detail = shallowRef<Detail<T> | null>(null)
  /** What the charts are zoomed to, for those that are shown later; null for all of it. */
  const zoom = shallowRef<Range | null>(null)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | null = null
  let asked = ''
  let hasFailed = false

  function zoomTo(range: Range | null): void {
    // Linked charts all say the same, and to place the lines of all of them takes long.
    if (String(range) === String(zoom.value) && !hasFailed) return
    zoom.value = range
    follow()
  }

  function follow(): void {
    const stretch = zoom.value === null ? null : stretchIn(zoom.value)
    const wanted = stretch === null ? '' : `${stretch.from}-${stretch.to} ${charted()}`
    if (wanted === asked && !hasFailed) return
    asked = wanted
    hasFailed = false
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
      if (!mine.signal.aborted) hasFailed = true
    }
  }

  watch(charted, follow)
  onScopeDispose(() => {
    clearTimeout(timer)
    running?.abort()
  })

  return { detail, zoom, zoomTo }
}
