/** What changed between two texts or rows, in pieces that can be marked. */
import { isRecord } from '@/api/json'

export type Mark = 'same' | 'gone' | 'new'

export interface Piece {
  mark: Mark
  text: string
}

/** More cells than this in the table of a comparison take too long for a page that answers while one types. */
const MOST_CELLS = 1_000_000
/** A word or one other character: Chinese has no spaces between words. */
const TOKENS = /[\p{L}\p{N}_]+|[^\p{L}\p{N}_]/gu
const IDEOGRAPHS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u

function tokensOf(text: string): string[] {
  return (text.match(TOKENS) ?? []).flatMap((token) => (IDEOGRAPHS.test(token) ? [...token] : [token]))
}

/** Both texts in one line of pieces: what is the same, what went and what came. */
export function markTexts(before: string, after: string): Piece[] {
  if (before === after) return before === '' ? [] : [{ mark: 'same', text: before }]
  const old = tokensOf(before)
  const next = tokensOf(after)
  let start = 0
  while (start < old.length && start < next.length && old[start] === next[start]) start += 1
  let end = 0
  while (
    end < old.length - start &&
    end < next.length - start &&
    old[old.length - 1 - end] === next[next.length - 1 - end]
  )
    end += 1
  const pieces: Piece[] = []
  add(pieces, 'same', old.slice(0, start).join(''))
  markMiddle(pieces, old.slice(start, old.length - end), next.slice(start, next.length - end))
  add(pieces, 'same', old.slice(old.length - end).join(''))
  return pieces
}

function add(pieces: Piece[], mark: Mark, text: string): void {
  if (text === '') return
  const last = pieces.at(-1)
  if (last?.mark === mark) last.text += text
  else pieces.push({ mark, text })
}

function markMiddle(pieces: Piece[], old: readonly string[], next: readonly string[]): void {
  if (old.length * next.length > MOST_CELLS) {
    add(pieces, 'gone', old.join(''))
    add(pieces, 'new', next.join(''))
    return
  }
  const width = next.length + 1
  // Length of the longest common part of what follows each pair of places.
  const longest = new Uint16Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = next.length - 1; j >= 0; j--) {
      const below = longest[(i + 1) * width + j] ?? 0
      const right = longest[i * width + j + 1] ?? 0
      longest[i * width + j] = old[i] === next[j] ? (longest[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(below, right)
    }
  }
  let i = 0
  let j = 0
  while (i < old.length || j < next.length) {
    const canDrop = i < old.length
    const canTake = j < next.length
    if (canDrop && canTake && old[i] === next[j]) {
      add(pieces, 'same', old[i] ?? '')
      i += 1
      j += 1
    } else if (canDrop && (!canTake || (longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0))) {
      add(pieces, 'gone', old[i] ?? '')
      i += 1
    } else {
      add(pieces, 'new', next[j] ?? '')
      j += 1
    }
  }
}

const NAMED: Readonly<Record<string, string>> = {
  '\n': '↵',
  '\t': '⇥',
  ' ': '·',
  '\u00a0': '⍽',
  '\u3000': '□',
  '\r': '␍',
}
// Control characters, format characters (zero width, direction) and private use: nothing would be seen of them.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}]/gu

/** A marked piece as it can be seen: characters without a shape get one. */
export function visible(piece: Piece): string {
  if (piece.mark === 'same') return piece.text
  const isBlank = piece.text.trim() === ''
  return piece.text
    .replace(/[\n\t \u00a0\u3000\r]/g, (character) => (isBlank ? (NAMED[character] ?? character) : character))
    .replace(INVISIBLE, (character) =>
      /[\n\t\r]/.test(character)
        ? character
        : `⟨${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
    )
}

export interface FieldMarks {
  name: string
  state: 'same' | 'changed' | 'gone' | 'new'
  pieces: Piece[]
}

/** A value as a person reads it: texts as they are, conversations turn by turn, the rest as JSON. */
export function readable(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  const turns = readTurns(value)
  return turns ?? JSON.stringify(value, null, 2)
}

function readTurns(value: unknown): string | null {
  if (!Array.isArray(value) || value.length === 0) return null
  const lines: string[] = []
  for (const turn of value as unknown[]) {
    if (!isRecord(turn)) return null
    const role = turn.role ?? turn.from
    const content = turn.content ?? turn.value
    if (typeof role !== 'string' || typeof content !== 'string') return null
    lines.push(`${role}: ${content}`)
  }
  return lines.join('\n')
}

/** Field by field; those that changed first. */
export function markRows(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>> | null,
): FieldMarks[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after ?? {})])]
  const fields = names.map((name): FieldMarks => {
    const old = readable(before[name])
    if (after === null) return { name, state: 'same', pieces: [{ mark: 'same', text: old }] }
    if (!(name in before)) return { name, state: 'new', pieces: [{ mark: 'new', text: readable(after[name]) }] }
    if (!(name in after)) return { name, state: 'gone', pieces: [{ mark: 'gone', text: old }] }
    const pieces = markTexts(old, readable(after[name]))
    return { name, state: pieces.some((piece) => piece.mark !== 'same') ? 'changed' : 'same', pieces }
  })
  return [...fields.filter((field) => field.state !== 'same'), ...fields.filter((field) => field.state === 'same')]
}

/** Unchanged stretches of a long text are cut down to what stands beside a change. */
export function cutSame(pieces: readonly Piece[], around = 80): Piece[] {
  if (pieces.every((piece) => piece.mark === 'same')) return [...pieces]
  return pieces.map((piece, index) => {
    if (piece.mark !== 'same' || piece.text.length <= 2 * around + 20) return piece
    const isFirst = index === 0
    const isLast = index === pieces.length - 1
    const head = isFirst ? '' : piece.text.slice(0, around)
    const tail = isLast ? '' : piece.text.slice(-around)
    return { mark: 'same', text: `${head} … ${tail}` }
  })
}
