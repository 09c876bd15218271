/** Parameter counts as people say them: 0.6 B, 135 M. */

const STEPS: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'K'],
]

export function sayParameters(count: number): string {
  for (const [size, letter] of STEPS) {
    if (count >= size) {
      const amount = count / size
      return `${amount >= 100 ? amount.toFixed(0) : amount.toPrecision(3).replace(/\.?0+$/, '')} ${letter}`
    }
  }
  return String(count)
}
