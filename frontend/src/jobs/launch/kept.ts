/** A launch that was begun and not sent: kept while the tab is open, so that leaving the form loses nothing. */
import type { Draft } from './draft'
import { emptyDraft } from './draft'
import type { SweepDraft } from './sweep/draft'
import { emptySweep } from './sweep/draft'

const KEY = 'trellis.launch.draft'

export interface Kept {
  draft: Draft
  sweep: SweepDraft
}

/** Whether somebody has put in more than the form fills in by itself. */
export function isWorthKeeping({ draft, sweep }: Kept): boolean {
  return draft.name.trim() !== '' || Object.keys(draft.params).length > 0 || draft.overrides.length > 0 || draft.exportName.trim() !== '' || draft.report.project.trim() !== ''
    || draft.tags.length > 0 || Object.keys(sweep.vary).length > 0 || sweep.seeds.trim() !== ''
}

/** A kept draft; null where there is none, or one of another release. */
export function parseKept(text: string | null): Kept | null {
  if (text === null) return null
  try {
    const found = JSON.parse(text) as Partial<Kept> | null
    if (found?.draft === undefined || found.sweep === undefined) return null
    const [usual, usualSweep] = [emptyDraft(), emptySweep()]
    const hasAll = Object.keys(usual).every((key) => key in (found.draft ?? {})) && Object.keys(usualSweep).every((key) => key in (found.sweep ?? {}))
    return hasAll ? { draft: found.draft, sweep: found.sweep } : null
  } catch (cause) {
    if (cause instanceof SyntaxError) return null
    throw cause
  }
}

export function readKept(): Kept | null {
  try {
    return parseKept(window.sessionStorage.getItem(KEY))
  } catch (cause) {
    if (cause instanceof DOMException) return null
    throw cause
  }
}

export function writeKept(kept: Kept | null): void {
  try {
    if (kept !== null && isWorthKeeping(kept)) window.sessionStorage.setItem(KEY, JSON.stringify(kept))
    else window.sessionStorage.removeItem(KEY)
  } catch (cause) {
    // Storage is full or forbidden: then the draft lasts as long as the page.
    if (!(cause instanceof DOMException)) throw cause
  }
}
