/** What a copy of a job is called. */

/** A name from `{name} (copy)` or `{name}（副本）`, whichever language it was made in, with its number. */
const COPY = /^(.*?)(?:\s*(?:\(copy(?: (\d+))?\)|（副本(?: ?(\d+))?）))+$/

/** A copy of a copy counts on and does not say so twice: "run (copy)", then "run (copy 2)". */
export function copyOf(name: string): { name: string; number: number } {
  const [, base, english, chinese] = COPY.exec(name) ?? []
  if (base === undefined || base === '') return { name, number: 1 }
  return { name: base, number: Number(english ?? chinese ?? '1') + 1 }
}
