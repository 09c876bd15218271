/** Forms that were begun and not sent: kept while the tab is open, each for the address that it was begun at. */
import type { LocationQuery } from 'vue-router'

/** The drafts of a form that were left last; older ones make way for them. */
const MOST = 10

export interface KeptDrafts<T> {
  read: (address: string) => T | null
  /** Keeps a draft, or with null forgets it. */
  write: (address: string, draft: T | null) => void
}

/** The same for the same query, in whatever order it is written. */
export function addressOf(query: LocationQuery): string {
  return JSON.stringify(Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Whether something that was read has all that `whole` has: a draft of another release may lack some of it. */
export function hasAllOf(whole: object, found: unknown): boolean {
  return typeof found === 'object' && found !== null && Object.keys(whole).every((key) => key in found)
}

/** What is kept, by address, the one left last at the end; empty where it cannot be read. */
export function parseKept<T>(text: string | null, soundOf: (found: unknown) => T | null): Map<string, T> {
  if (text === null) return new Map()
  try {
    const found: unknown = JSON.parse(text)
    if (!Array.isArray(found)) return new Map()
    return new Map(
      (found as [string, unknown][]).flatMap(([address, it]) => {
        const sound = soundOf(it)
        return sound === null ? [] : [[address, sound] as const]
      }),
    )
  } catch (cause) {
    if (cause instanceof SyntaxError) return new Map()
    throw cause
  }
}

/** The drafts of one form; `soundOf` gives what was kept, or null where it is one of another release. */
export function keptDrafts<T>(form: string, soundOf: (found: unknown) => T | null): KeptDrafts<T> {
  const key = `trellis.${form}.drafts`

  function readAll(): Map<string, T> {
    try {
      return parseKept(window.sessionStorage.getItem(key), soundOf)
    } catch (cause) {
      if (cause instanceof DOMException) return new Map()
      throw cause
    }
  }

  return {
    read: (address) => readAll().get(address) ?? null,
    write: (address, draft) => {
      const all = readAll()
      all.delete(address)
      if (draft !== null) all.set(address, draft)
      try {
        window.sessionStorage.setItem(key, JSON.stringify([...all].slice(-MOST)))
      } catch (cause) {
        // Storage is full or forbidden: then the draft lasts as long as the page.
        if (!(cause instanceof DOMException)) throw cause
      }
    },
  }
}
