/** Values of parameters: numbers, words and lists. */

/** As a person writes it: 1e-5, 0.05, 8, bf16. */
export function formatParameter(value: unknown): string {
  return write(value, 4)
}

/** With all of its digits, where values that differ must read differently. */
export function formatWholeParameter(value: unknown): string {
  return write(value, 12)
}

function write(value: unknown, digits: number): string {
  if (Array.isArray(value)) return value.map((each) => write(each, digits)).join(', ')
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value)
  const rounded = Number(value.toPrecision(digits))
  return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 ? String(rounded) : rounded.toExponential().replace('e+', 'e')
}
