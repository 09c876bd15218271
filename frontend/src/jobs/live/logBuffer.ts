/** Lines of a job's output in order, each once, however they arrive: from the end, from before, or from the stream. */
import type { LogLine } from '../types'

/** Beyond this the oldest lines make room: the browser has to hold them all. */
export const MAX_LINES = 200_000

// Colours and cursor movements that programs write for terminals.
// eslint-disable-next-line no-control-regex -- that is what such sequences begin with
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])/g

export function stripAnsi(text: string): string {
  return text.includes('\u001b') ? text.replace(ANSI, '') : text
}

/** What a terminal would show of a line with carriage returns: progress bars rewrite themselves. */
export function visibleText(text: string): string {
  const clean = stripAnsi(text)
  if (!clean.includes('\r')) return clean
  return clean.split('\r').findLast((part) => part !== '') ?? ''
}

export interface LogBuffer {
  readonly lines: readonly LogLine[]
  /** Number of lines that had to make room. */
  readonly droppedCount: number
  /** Adds lines; false when all were known. */
  add: (lines: readonly LogLine[]) => boolean
  clear: () => void
}

export function createLogBuffer(limit = MAX_LINES): LogBuffer {
  let lines: LogLine[] = []
  let droppedCount = 0

  function add(arrived: readonly LogLine[]): boolean {
    const clean = arrived.map((line) => ({ ...line, text: visibleText(line.text) }))
    const first = clean[0]
    if (first === undefined) return false
    const end = lines.at(-1)?.line ?? 0
    let hasChanged = true
    if (lines.length === 0 || first.line > end) {
      // One by one: spreading a whole page of lines into push would overflow the stack.
      for (const line of clean) lines.push(line)
    } else {
      const known = new Set(lines.map((line) => line.line))
      const fresh = clean.filter((line) => !known.has(line.line))
      hasChanged = fresh.length > 0
      if (hasChanged) lines = [...fresh, ...lines].sort((a, b) => a.line - b.line)
    }
    if (lines.length > limit) {
      const excess = lines.length - limit
      lines = lines.slice(excess)
      droppedCount += excess
    }
    return hasChanged
  }

  return {
    get lines() {
      return lines
    },
    get droppedCount() {
      return droppedCount
    },
    add,
    clear() {
      lines = []
      droppedCount = 0
    },
  }
}
