/** Arithmetic of sizes and durations, free of language. */

export type ByteUnit = 'B' | 'KiB' | 'MiB' | 'GiB' | 'TiB'
const BYTE_UNITS: readonly ByteUnit[] = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** The largest unit of which there is at least one. */
export function splitBytes(size: number): { amount: number; unit: ByteUnit } {
  let amount = Math.max(0, size)
  let index = 0
  while (amount >= 1024 && index < BYTE_UNITS.length - 1) {
    amount /= 1024
    index += 1
  }
  return { amount, unit: BYTE_UNITS[index] ?? 'B' }
}

export type DurationUnit = 'd' | 'h' | 'min' | 's'
const DURATION_UNITS: readonly [DurationUnit, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
]

/** The two largest units; a zero second unit is left out. Seconds are whole. */
export function splitDuration(seconds: number): { amount: number; unit: DurationUnit }[] {
  let rest = Math.max(0, Math.round(seconds))
  const parts: { amount: number; unit: DurationUnit }[] = []
  for (const [unit, length] of DURATION_UNITS) {
    const amount = Math.floor(rest / length)
    if (amount > 0 || parts.length > 0) parts.push({ amount, unit })
    rest -= amount * length
    if (parts.length === 2) break
  }
  if (parts.length === 0) return [{ amount: 0, unit: 's' }]
  return parts.filter((part, index) => index === 0 || part.amount > 0)
}
