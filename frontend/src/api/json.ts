/** What can be told of a value that came as JSON. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Undefined where the text is no JSON: it may have been cut. */
export function parseJson(text: string): unknown {
  if (!/^\s*[[{"]/.test(text)) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw cause
  }
}
