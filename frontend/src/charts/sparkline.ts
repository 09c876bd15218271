/** Geometry of a sparkline: an SVG path per stretch without gaps. */
import { formatFixed } from '@/format/numbers'

/** SVG path of `values` in a box of `width` × `height`, over `range` or that of the values; a value that is not finite breaks the line. */
export function sparklinePath(
  values: readonly number[],
  width: number,
  height: number,
  padding = 2,
  range?: readonly [number, number],
): string {
  const finite = values.filter(Number.isFinite)
  if (finite.length === 0) return ''
  const low = range?.[0] ?? Math.min(...finite)
  const span = (range?.[1] ?? Math.max(...finite)) - low
  const xStep = values.length > 1 ? (width - 2 * padding) / (values.length - 1) : 0
  const y = (value: number) =>
    span === 0 ? height / 2 : height - padding - ((value - low) / span) * (height - 2 * padding)
  let isPenDown = false
  const parts: string[] = []
  values.forEach((value, index) => {
    if (!Number.isFinite(value)) {
      isPenDown = false
      return
    }
    parts.push(`${isPenDown ? 'L' : 'M'}${formatFixed(padding + index * xStep, 1)} ${formatFixed(y(value), 1)}`)
    isPenDown = true
  })
  // A single point has no line: a short dash keeps it visible.
  if (parts.length === 1) parts.push('h2')
  return parts.join('')
}
