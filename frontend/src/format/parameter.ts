/** Values of parameters: numbers, words and lists. */

/** As a person writes it: 1e-5, 0.05, 8, bf16. */
export function formatParameter(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatParameter).join(', ')
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value)
  const rounded = Number(value.toPrecision(4))
  return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 ? String(rounded) : rounded.toExponential().replace('e+', 'e')
}
