/** The place of an episode as an address writes it. */

/** A number of the address that counts something; null for anything else. */
export function numberIn(value: unknown): number | null {
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : null
}
