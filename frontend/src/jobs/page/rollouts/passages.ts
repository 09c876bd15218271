/** A response as it is read: what the model thought, what it said, and the tools that it called. */
import { isRecord, parseJson } from '@/api/json'

/** A call as it was written; nothing tells whether it was run. */
export interface WrittenCall {
  name: string
  arguments: Record<string, unknown>
}

export type Passage = { kind: 'thinking' | 'text'; text: string } | { kind: 'call'; text: string; call: WrittenCall }

const OPEN = '<think>'
const CLOSE = '</think>'
/** As templates of Hermes and Qwen write calls; the capture lets `split` keep them. */
const CALL = /(<tool_call>[\s\S]*?<\/tool_call>)/

/** Thinking may have begun in the prompt, where templates open it, and may never have ended. */
export function passagesOf(response: string): Passage[] {
  const end = response.indexOf(CLOSE)
  const begin = response.indexOf(OPEN)
  if (end < 0 && begin < 0) return saidIn(response)
  const from = begin >= 0 && (end < 0 || begin < end) ? begin : -1
  const thinking = response.slice(from < 0 ? 0 : from + OPEN.length, end < 0 ? undefined : end).trim()
  return [
    ...saidIn(from > 0 ? response.slice(0, from).trim() : ''),
    ...(thinking === '' ? [] : [{ kind: 'thinking' as const, text: thinking }]),
    ...saidIn(end < 0 ? '' : response.slice(end + CLOSE.length).trim()),
  ]
}

/** What was said, with calls apart from the text; one that cannot be read stays in it. */
function saidIn(text: string): Passage[] {
  if (!CALL.test(text)) return text === '' ? [] : [{ kind: 'text', text }]
  const found: Passage[] = []
  for (const part of text.split(CALL)) {
    const call = CALL.test(part) ? readCall(part) : null
    const last = found.at(-1)
    if (call !== null) found.push({ kind: 'call', text: part, call })
    else if (last?.kind === 'text') last.text += part
    else found.push({ kind: 'text', text: part })
  }
  return found
    .map((part) => (part.kind === 'text' ? { ...part, text: part.text.trim() } : part))
    .filter((part) => part.text !== '')
}

function readCall(text: string): WrittenCall | null {
  const value = parseJson(text.replace(/<\/?tool_call>/g, ''))
  if (!isRecord(value) || typeof value.name !== 'string') return null
  const given = typeof value.arguments === 'string' ? parseJson(value.arguments) : value.arguments
  if (given !== undefined && !isRecord(given)) return null
  return { name: value.name, arguments: given ?? {} }
}
