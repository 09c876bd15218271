/** Launches that were begun and not sent: kept while the tab is open, each for the address that it was begun at. */
import type { LocationQuery } from 'vue-router'

import { type Draft, emptyDraft, overrideRow } from './draft'
import { emptySweep, type SweepDraft } from './sweep/draft'

const KEY = 'trellis.launch.drafts'
/** The drafts left last; older ones make way for them. */
const MOST = 10

export interface Kept {
  draft: Draft
  sweep: SweepDraft
}

/** The same for the same query, in whatever order it is written. */
export function addressOf(query: LocationQuery): string {
  return JSON.stringify(Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** A kept draft; null where it is one of another release. */
function soundOf(found: Partial<Kept> | null | undefined): Kept | null {
  if (found?.draft == null || found.sweep == null) return null
  const { draft, sweep } = found
  const hasAll =
    Object.keys(emptyDraft()).every((key) => key in draft) && Object.keys(emptySweep()).every((key) => key in sweep)
  // Rows that are added later must not get the number of one of these.
  return hasAll
    ? { draft: { ...draft, overrides: draft.overrides.map((row) => overrideRow(row.key, row.text)) }, sweep }
    : null
}

/** What is kept, by address, the one left last at the end; empty where it cannot be read. */
export function parseKept(text: string | null): Map<string, Kept> {
  if (text === null) return new Map()
  try {
    const found: unknown = JSON.parse(text)
    if (!Array.isArray(found)) return new Map()
    return new Map(
      (found as [string, Partial<Kept>][]).flatMap(([address, it]) => {
        const sound = soundOf(it)
        return sound === null ? [] : [[address, sound] as const]
      }),
    )
  } catch (cause) {
    if (cause instanceof SyntaxError) return new Map()
    throw cause
  }
}

function readAll(): Map<string, Kept> {
  try {
    return parseKept(window.sessionStorage.getItem(KEY))
  } catch (cause) {
    if (cause instanceof DOMException) return new Map()
    throw cause
  }
}

export function readKept(address: string): Kept | null {
  return readAll().get(address) ?? null
}

/** Keeps a draft, or with null forgets it. */
export function writeKept(address: string, kept: Kept | null): void {
  const all = readAll()
  all.delete(address)
  if (kept !== null) all.set(address, kept)
  try {
    window.sessionStorage.setItem(KEY, JSON.stringify([...all].slice(-MOST)))
  } catch (cause) {
    // Storage is full or forbidden: then the draft lasts as long as the page.
    if (!(cause instanceof DOMException)) throw cause
  }
}
