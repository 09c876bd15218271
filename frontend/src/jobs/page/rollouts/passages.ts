/** A response as it is read: what the model thought, and what it said. */
export interface Passage {
  kind: 'thinking' | 'text'
  text: string
}

const OPEN = '<think>'
const CLOSE = '</think>'

/** Thinking may have begun in the prompt, where templates open it, and may never have ended. */
export function passagesOf(response: string): Passage[] {
  const end = response.indexOf(CLOSE)
  const begin = response.indexOf(OPEN)
  if (end < 0 && begin < 0) return [{ kind: 'text', text: response }]
  const from = begin >= 0 && (end < 0 || begin < end) ? begin : -1
  const parts: Passage[] = [
    { kind: 'text', text: from > 0 ? response.slice(0, from) : '' },
    { kind: 'thinking', text: response.slice(from < 0 ? 0 : from + OPEN.length, end < 0 ? undefined : end) },
    { kind: 'text', text: end < 0 ? '' : response.slice(end + CLOSE.length) },
  ]
  return parts.map((part) => ({ ...part, text: part.text.trim() })).filter((part) => part.text !== '')
}
