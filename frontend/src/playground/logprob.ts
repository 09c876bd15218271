/** How sure the model was of a token, as a colour. */

/** From which probability on a token has which shade: 0 is the surest. */
const SHADES = [0.9, 0.6, 0.3, 0.1] as const

export function shadeOf(logprob: number | null): number {
  if (logprob === null) return 0
  const at = SHADES.findIndex((least) => Math.exp(logprob) >= least)
  return at === -1 ? SHADES.length : at
}

/** A token in a list: what cannot be seen is written out. */
export function spell(text: string): string {
  return text === '' ? '∅' : text.replaceAll('\n', '↵').replaceAll('\t', '⇥').replaceAll(' ', '␣')
}

/** Whether a token can stand in another's place: special tokens and halves of characters have no text of their own. */
export function canReplace(text: string, current: string): boolean {
  return text !== '' && text !== current && !text.includes('\uFFFD')
}
