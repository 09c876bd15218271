/** The place of a response as an address writes it. */

/** A number of the address that counts something; null for anything else. */
export function numberIn(value: unknown): number | null {
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : null
}

/** The key of a prompt in the address; null for anything else. */
export function keyIn(value: unknown): string | null {
  return typeof value === 'string' && /^[\w-]{1,64}$/.test(value) ? value : null
}
