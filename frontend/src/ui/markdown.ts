/**
 * Markdown as people write it in notes, read into a tree: headings, lists, quotes, code, emphasis and links.
 *
 * The tree is drawn with text nodes alone, so that nothing in a note can become markup; links lead to web addresses and
 * into the dashboard only. HTML, images and footnotes are not known and stand as they were written.
 */

export type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'emphasis' | 'strike'; parts: Inline[] }
  | { kind: 'link'; href: string; parts: Inline[] }

export type Block =
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'paragraph'; parts: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; isOrdered: boolean; items: Block[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' }

/** What is deeper than this stands as text: nobody reads it, and a note must not exhaust the stack. */
const DEEPEST = 6
const FENCE = /^ {0,3}(```+|~~~+)/
// No pattern here may try the same spaces in several ways: responses with thousands of them would freeze the page.
const HEADING = /^ {0,3}(#{1,6})\s/
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])\s+(.*)$/
const TABLE_RULE_CELL = /^:?-{2,}:?$/
const LINK = /^\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})\)/
const ADDRESS = /^https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"]/
const MARKS = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'strike'],
  ['*', 'emphasis'],
  ['_', 'emphasis'],
] as const

/** Whether a link may lead there: the web, or a page of the dashboard. */
export function isSafeAddress(href: string): boolean {
  return /^https?:\/\//i.test(href) || /^\/(?![/\\])/.test(href)
}

export function parseMarkdown(text: string, depth = 0): Block[] {
  return readBlocks(text.replace(/\r\n?|[\u2028\u2029]/g, '\n').split('\n'), depth)
}

function readBlocks(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = []
  let at = 0
  while (at < lines.length) {
    const [block, next] = readBlock(lines, at, depth)
    if (block !== null) blocks.push(block)
    at = next
  }
  return blocks
}

/** The block that begins at a line, and the line behind it. */
function readBlock(lines: readonly string[], at: number, depth: number): [Block | null, number] {
  const line = lines[at] ?? ''
  if (line.trim() === '') return [null, at + 1]
  const fence = FENCE.exec(line)?.[1]
  if (fence !== undefined) return readCode(lines, at, fence)
  const heading = HEADING.exec(line)
  if (heading !== null)
    return [
      { kind: 'heading', level: heading[1]?.length ?? 1, parts: readInline(readTitle(line.slice(heading[0].length))) },
      at + 1,
    ]
  if (RULE.test(line)) return [{ kind: 'rule' }, at + 1]
  if (depth < DEEPEST && line.startsWith('>')) return readQuote(lines, at, depth)
  if (depth < DEEPEST && ITEM.test(line)) return readList(lines, at, depth)
  if (line.includes('|') && isTableRule(lines[at + 1] ?? '')) return readTable(lines, at)
  return readParagraph(lines, at, depth)
}

/** The text of a heading, without the number signs that may close it. */
function readTitle(text: string): string {
  let end = text.trimEnd().length
  while (text[end - 1] === '#') end -= 1
  return text.slice(0, end).trim()
}

function splitCells(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim())
}

function isTableRule(line: string): boolean {
  return splitCells(line).every((cell) => TABLE_RULE_CELL.test(cell))
}

function readCode(lines: readonly string[], at: number, fence: string): [Block, number] {
  const end = lines.findIndex(
    (line, index) => index > at && line.trim().startsWith(fence) && line.trim().replaceAll(fence[0] ?? '`', '') === '',
  )
  const stop = end < 0 ? lines.length : end
  return [{ kind: 'code', text: lines.slice(at + 1, stop).join('\n') }, stop + 1]
}

function readQuote(lines: readonly string[], at: number, depth: number): [Block, number] {
  let stop = at
  while (stop < lines.length && (lines[stop] ?? '').startsWith('>')) stop += 1
  const inner = lines.slice(at, stop).map((line) => line.replace(/^> ?/, ''))
  return [{ kind: 'quote', blocks: readBlocks(inner, depth + 1) }, stop]
}

function readList(lines: readonly string[], at: number, depth: number): [Block, number] {
  const isOrdered = /^\s*\d/.test(lines[at] ?? '')
  const indent = /^ */.exec(lines[at] ?? '')?.[0].length ?? 0
  const items: string[][] = []
  let stop = at
  while (stop < lines.length) {
    const line = lines[stop] ?? ''
    const item = ITEM.exec(line)
    const isBlank = line.trim() === ''
    if (item !== null && (item[1] ?? '').length < indent + 2) {
      if (/^\d/.test(item[2] ?? '') !== isOrdered) break
      items.push([item[3] ?? ''])
    } else if (/^(?: {2,}|\t)/.test(line)) {
      items.at(-1)?.push(line.replace(/^(?:\t| {1,4})/, ''))
    } else if (!isBlank || !/^(?: {2,}|\t)|^ {0,3}(?:[-*+]|\d{1,9}[.)])\s/.test(lines[stop + 1] ?? '')) {
      break
    }
    stop += 1
  }
  return [{ kind: 'list', isOrdered, items: items.map((item) => readBlocks(item, depth + 1)) }, Math.max(stop, at + 1)]
}

function readTable(lines: readonly string[], at: number): [Block, number] {
  const cells = (line: string) => splitCells(line).map((cell) => readInline(cell))
  let stop = at + 2
  while (stop < lines.length && (lines[stop] ?? '').includes('|')) stop += 1
  return [{ kind: 'table', head: cells(lines[at] ?? ''), rows: lines.slice(at + 2, stop).map(cells) }, stop]
}

function readParagraph(lines: readonly string[], at: number, depth: number): [Block, number] {
  let stop = at + 1
  while (stop < lines.length) {
    const line = lines[stop] ?? ''
    const isOther = line.trim() === '' || FENCE.test(line) || HEADING.test(line) || RULE.test(line)
    if (isOther || (depth < DEEPEST && (line.startsWith('>') || ITEM.test(line)))) break
    stop += 1
  }
  return [{ kind: 'paragraph', parts: readInline(lines.slice(at, stop).join('\n')) }, stop]
}

export function readInline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = []
  let plain = ''
  let at = 0
  const flush = () => {
    if (plain !== '') parts.push({ kind: 'text', text: plain })
    plain = ''
  }
  while (at < text.length) {
    const found = depth < DEEPEST ? readMark(text, at, depth) : null
    if (found === null) {
      const isEscape = text[at] === '\\' && /[\\`*_~[\]#>|-]/.test(text[at + 1] ?? '')
      plain += isEscape ? (text[at + 1] ?? '') : (text[at] ?? '')
      at += isEscape ? 2 : 1
      continue
    }
    flush()
    parts.push(found[0])
    at = found[1]
  }
  flush()
  return parts
}

function readMark(text: string, at: number, depth: number): [Inline, number] | null {
  if (text[at] === '`') {
    const end = text.indexOf('`', at + 1)
    return end > at + 1 ? [{ kind: 'code', text: text.slice(at + 1, end) }, end + 1] : null
  }
  if (text[at] === '[') return readLink(text, at, depth)
  if (text[at] === 'h' && !/\w/.test(text[at - 1] ?? '')) {
    const address = ADDRESS.exec(text.slice(at, at + 2000))?.[0]
    return address === undefined
      ? null
      : [{ kind: 'link', href: address, parts: [{ kind: 'text', text: address }] }, at + address.length]
  }
  for (const [mark, kind] of MARKS) {
    if (!text.startsWith(mark, at) || /\s/.test(text[at + mark.length] ?? ' ')) continue
    // An underscore inside a word is part of a name, such as total_steps.
    if (mark.startsWith('_') && /\w/.test(text[at - 1] ?? '')) continue
    const end = text.indexOf(mark, at + mark.length + 1)
    if (
      end < 0 ||
      /\s/.test(text[end - 1] ?? ' ') ||
      (mark.startsWith('_') && /\w/.test(text[end + mark.length] ?? ''))
    )
      continue
    return [{ kind, parts: readInline(text.slice(at + mark.length, end), depth + 1) }, end + mark.length]
  }
  return null
}

function readLink(text: string, at: number, depth: number): [Inline, number] | null {
  const [whole, label = '', href = ''] = LINK.exec(text.slice(at, at + 2600)) ?? []
  if (whole === undefined || !isSafeAddress(href)) return null
  return [{ kind: 'link', href, parts: readInline(label, depth + 1) }, at + whole.length]
}
