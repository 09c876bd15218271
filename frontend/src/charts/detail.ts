/** A part of thinned curves in detail: what a zoomed chart draws between the ends of its stretch. */
import type { Curve } from './curve'
import { abscissae, type ChartLine, type XAxis } from './lines'

/** Steps from the first to the last, both included. */
export interface Stretch {
  from: number
  to: number
}

/** The steps of all lines that lie in a range of the axis, with the next one on both sides; null where no line is thinned out. */
export function stretchOf(
  lines: readonly ChartLine[],
  axis: XAxis,
  [low, high]: readonly [number, number],
): Stretch | null {
  let found: Stretch | null = null
  for (const line of lines) {
    if ((line.curve.width ?? 1) === 1) continue
    const places = abscissae(line, axis)
    const first = places.findIndex((place) => place >= low)
    const last = places.findLastIndex((place) => place <= high)
    if (first < 0 || last < 0) continue
    const from = line.curve.steps[Math.max(0, Math.min(first, last) - 1)] ?? 0
    const to = line.curve.steps[Math.min(places.length - 1, Math.max(first, last) + 1)] ?? from
    found = found === null ? { from, to } : { from: Math.min(found.from, from), to: Math.max(found.to, to) }
  }
  return found
}

/** A curve with a part of it in detail; itself where nothing was measured there. */
export function withDetail(curve: Curve, detail: Curve | undefined, { from, to }: Stretch): Curve {
  if (detail === undefined || detail.steps.length === 0) return curve
  const start = curve.steps.filter((step) => step < from).length
  const end = curve.steps.filter((step) => step <= to).length
  const put = (own: readonly number[], more: readonly number[]) => [...own.slice(0, start), ...more, ...own.slice(end)]
  return { steps: put(curve.steps, detail.steps), values: put(curve.values, detail.values), width: detail.width }
}
