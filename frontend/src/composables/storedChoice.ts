/** Small choices that the browser remembers; a browser without storage simply forgets them. */

export function readChoice<T extends string>(key: string, allowed: readonly T[]): T | null {
  const stored = readText(key)
  return allowed.find((one) => one === stored) ?? null
}

export function readText(key: string): string | null {
  try {
    return window.localStorage.getItem(key)
  } catch (cause) {
    if (cause instanceof DOMException) return null
    throw cause
  }
}

export function writeChoice(key: string, value: string): void {
  try {
    window.localStorage.setItem(key, value)
  } catch (cause) {
    // Storage is full or forbidden: the choice lasts until the tab closes.
    if (!(cause instanceof DOMException)) throw cause
  }
}
