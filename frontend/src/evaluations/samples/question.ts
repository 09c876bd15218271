/** What a problem asks: its prompt without the instructions, examples and marks of a template that all prompts share. */

const MOST_CHARACTERS = 240
const MOST_OF_AN_END = 100

function commonStart(texts: readonly string[]): number {
  const [first = ''] = texts
  let length = first.length
  for (const text of texts) {
    let at = 0
    while (at < length && text[at] === first[at]) at++
    length = at
  }
  return length
}

const turned = (text: string) => [...text].reverse().join('')

/** For each prompt its own part, at most some lines of a list long; a prompt that stands alone is shown from its end. */
export function questionsOf(prompts: readonly string[]): string[] {
  const different = [...new Set(prompts)]
  if (different.length < 2) return prompts.map((prompt) => shorten(prompt))
  // Whole lines only: questions often begin or end with the same words.
  const [first = ''] = different
  const start = first.lastIndexOf('\n', commonStart(different) - 1) + 1
  const rests = different.map((prompt) => prompt.slice(start))
  const shared = commonStart(rests.map(turned))
  const [rest = ''] = rests
  const line = rest.indexOf('\n', rest.length - shared)
  const end = line === -1 ? 0 : rest.length - line
  const isCut = start > 0 || end > 0
  return prompts.map((prompt) => (isCut ? begin(plainOf(prompt.slice(start, prompt.length - end))) : shorten(prompt)))
}

function plainOf(text: string): string {
  return text
    .replace(/<\|[^|>]*\|>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

/** A question without its template is known by its beginning. */
function begin(plain: string): string {
  return plain.length <= MOST_CHARACTERS ? plain : `${plain.slice(0, MOST_CHARACTERS)}…`
}

/** A whole prompt ends with the question; as much of it as two lines of the list hold. */
function shorten(text: string): string {
  const plain = plainOf(text)
  return plain.length <= MOST_OF_AN_END ? plain : `…${plain.slice(-MOST_OF_AN_END)}`
}
