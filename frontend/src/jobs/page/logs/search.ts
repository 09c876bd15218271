/** Finding words in log lines. */
import type { LogLine } from '../../types'

export type LogStream = LogLine['stream']
export const LOG_STREAMS = ['stdout', 'stderr', 'platform'] as const satisfies readonly LogStream[]

export interface LogFilter {
  needle: string
  streams: ReadonlySet<LogStream>
  /** Leave out the lines without a match, instead of only marking the others. */
  onlyMatches: boolean
}

/** Lines that the filter lets through; the same array where it lets everything through. */
export function filterLines(lines: readonly LogLine[], filter: LogFilter): readonly LogLine[] {
  const hasAllStreams = LOG_STREAMS.every((stream) => filter.streams.has(stream))
  const needle = filter.onlyMatches ? filter.needle.toLowerCase() : ''
  if (hasAllStreams && needle === '') return lines
  return lines.filter(
    (line) => filter.streams.has(line.stream) && (needle === '' || line.text.toLowerCase().includes(needle)),
  )
}

/** Indices of the lines that hold the needle. */
export function findMatches(lines: readonly LogLine[], needle: string): number[] {
  if (needle === '') return []
  const wanted = needle.toLowerCase()
  const found: number[] = []
  lines.forEach((line, index) => {
    if (line.text.toLowerCase().includes(wanted)) found.push(index)
  })
  return found
}

export interface Segment {
  text: string
  isMatch: boolean
}

/** A text cut at its matches. */
export function segments(text: string, needle: string): Segment[] {
  if (needle === '') return [{ text, isMatch: false }]
  const parts: Segment[] = []
  const lower = text.toLowerCase()
  const wanted = needle.toLowerCase()
  let from = 0
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), isMatch: false })
    parts.push({ text: text.slice(at, at + needle.length), isMatch: true })
    from = at + needle.length
  }
  if (from < text.length || parts.length === 0) parts.push({ text: text.slice(from), isMatch: false })
  return parts
}

/** The lines as a file. */
export function toText(lines: readonly LogLine[]): string {
  return lines.map((line) => `${line.time} ${line.stream} ${line.text}\n`).join('')
}

// Engines write all their logging to stderr: what a line says tells more than where it was written.
const ERROR = /\b(?:error|exception|traceback|fatal|critical|out of memory|killed)\b/i
const ERROR_CLASS = /[a-z](?:Error|Exception)\b/

/** Whether a line tells of something that went wrong. */
/** A metric and its value as trainers print them: `val-aux/dataset/error/mean@1:0.0`. What it is called is no error. */
const METRIC = /[\w.@-]+(?:\/[\w.@()-]+)+['"]?\s*[:=]\s*(?:np\.float\d+\()?[-+]?(?:\d|nan|inf)/gi

export function isError(text: string): boolean {
  const words = text.replace(METRIC, '')
  return ERROR.test(words) || ERROR_CLASS.test(words)
}
