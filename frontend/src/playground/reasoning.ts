/** What a model thought before it answered, apart from its answer. */
const BEGIN = '<think>'
const END = '</think>'

export interface Parts {
  /** Null: it did not think, or not visibly. */
  thoughts: string | null
  /** Its thoughts are at an end. */
  isOver: boolean
  answer: string
}

/** A template may have begun the thoughts in the prompt: then they have only an end. */
export function splitThoughts(text: string): Parts {
  const begun = text.trimStart().startsWith(BEGIN)
  const end = text.indexOf(END)
  // Where the tags are spoken of in the middle of an answer, nothing was thought.
  const isSpokenOf = text.includes(BEGIN)
  if (!begun && (end === -1 || isSpokenOf)) return { thoughts: null, isOver: true, answer: text }
  const from = begun ? text.indexOf(BEGIN) + BEGIN.length : 0
  const thoughts = (end === -1 ? text.slice(from) : text.slice(from, end)).trim()
  return {
    thoughts: end !== -1 && thoughts === '' ? null : thoughts,
    isOver: end !== -1,
    answer: end === -1 ? '' : text.slice(end + END.length).trimStart(),
  }
}
