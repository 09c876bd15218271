/** How calls of tools read. */

/** Arguments on several lines; what is no JSON, as a model may write, stands as it was written. */
export function spellArguments(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
