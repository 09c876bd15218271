/** A list that the server hands out page by page. */
import { computed, ref, shallowRef } from 'vue'
import type { WatchSource } from 'vue'

import { type ApiError, asApiError } from './errors'
import { useResource } from './useResource'

export interface CursorPage<T> {
  items: T[]
  next_cursor?: string | null
  /** How many there are on all pages, where the server counts them. */
  total?: number
}

/** Every item of a list that is short enough to be shown whole. */
export async function readAllPages<T>(load: (cursor: string | undefined) => Promise<CursorPage<T>>): Promise<T[]> {
  const items: T[] = []
  let cursor: string | undefined
  do {
    const page = await load(cursor)
    items.push(...page.items)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return items
}

interface CursorListOptions<T> {
  watch?: WatchSource | WatchSource[]
  /** Rereads the first page; pages loaded by hand stay as they were read. May depend on what is there. */
  intervalMs?: number | ((items: readonly T[]) => number | null)
}

export function useCursorList<T extends { id: string | number }>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<CursorPage<T>>,
  options: CursorListOptions<T> = {},
) {
  const later = shallowRef<CursorPage<T>[]>([])
  const isLoadingMore = ref(false)
  const moreError = shallowRef<ApiError | null>(null)
  // Grows with every reset, so that a late answer for other filters is dropped.
  let generation = 0
  // Whether a page beyond those in `later` was asked for and has not come yet.
  let isAsked = false

  /** What is there with this first page: a row that moved between two readings is there once. */
  function joined(firstPage: CursorPage<T> | null): T[] {
    const seen = new Map<string | number, T>()
    for (const page of [firstPage, ...later.value]) {
      for (const item of page?.items ?? []) if (!seen.has(item.id)) seen.set(item.id, item)
    }
    return [...seen.values()]
  }

  const first = useResource((signal) => load(undefined, signal), {
    intervalMs: (firstPage) => {
      const wish = options.intervalMs ?? null
      return typeof wish === 'function' ? wish(joined(firstPage)) : wish
    },
    watch: options.watch,
    onReset: forget,
  })

  const items = computed(() => joined(first.data.value))
  const nextCursor = computed(() => (later.value.at(-1) ?? first.data.value)?.next_cursor ?? null)

  async function loadMore(): Promise<void> {
    if (nextCursor.value === null || isLoadingMore.value) return
    const mine = generation
    isAsked = true
    isLoadingMore.value = true
    moreError.value = null
    try {
      const page = await load(nextCursor.value, new AbortController().signal)
      if (mine === generation) later.value = [...later.value, page]
    } catch (cause) {
      if (mine === generation) moreError.value = asApiError(cause)
    } finally {
      if (mine === generation) rest()
    }
  }

  function rest(): void {
    isAsked = false
    isLoadingMore.value = false
  }

  /** Forgets the pages that were loaded by hand, and the one that is being loaded. */
  function forget(): void {
    generation += 1
    later.value = []
    moreError.value = null
    rest()
  }

  /** Reads every page that is shown anew, so that what was deleted is gone from each; with the one that is being loaded. */
  async function reload(): Promise<void> {
    const wanted = later.value.length + (isAsked ? 1 : 0)
    generation += 1
    const mine = generation
    moreError.value = null
    // A page that came meanwhile would continue what is about to be replaced.
    isLoadingMore.value = true
    await first.refresh()
    const pages: CursorPage<T>[] = []
    try {
      let cursor = first.data.value?.next_cursor
      while (mine === generation && pages.length < wanted && cursor != null) {
        const page = await load(cursor, new AbortController().signal)
        pages.push(page)
        cursor = page.next_cursor
      }
    } catch (cause) {
      if (mine === generation) moreError.value = asApiError(cause)
    }
    if (mine !== generation) return
    later.value = pages
    rest()
  }

  /** Begins at the first page again: where the order is another one, the others are no continuation. */
  async function restart(): Promise<void> {
    forget()
    await first.refresh()
  }

  return {
    first,
    items,
    hasMore: computed(() => nextCursor.value !== null),
    isLoadingMore,
    moreError,
    loadMore,
    reload,
    restart,
  }
}
