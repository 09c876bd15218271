/** Curves in columns, and how streamed points join points that the server has thinned out. */

/** One metric of one run: columns of equal length, steps ascending and unique; values may be NaN or infinite. */
export interface Curve {
  steps: number[]
  values: number[]
  /** Steps of a stretch of which only the extremes are here; absent from a complete curve. */
  width?: number
}

export interface CurvePoint {
  step: number
  value: number
}

export function emptyCurve(): Curve {
  return { steps: [], values: [] }
}

/** Index of the first step that is not below `step`. */
export function lowerBound(steps: readonly number[], step: number): number {
  let low = 0
  let high = steps.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((steps[middle] ?? Infinity) < step) low = middle + 1
    else high = middle
  }
  return low
}

function put(curve: Curve, point: CurvePoint): void {
  const last = curve.steps.at(-1)
  if (last === undefined || point.step > last) {
    curve.steps.push(point.step)
    curve.values.push(point.value)
    return
  }
  // A resumed attempt repeats steps: the later report of a step replaces the earlier one.
  const index = lowerBound(curve.steps, point.step)
  const isKnown = curve.steps[index] === point.step
  curve.steps.splice(index, isKnown ? 1 : 0, point.step)
  curve.values.splice(index, isKnown ? 1 : 0, point.value)
}

/**
 * Adds points to a curve in place and keeps it within `limit` points.
 *
 * Live points arrive in full while the server's are already thinned out. Once over the limit, the whole curve is
 * thinned to half of it, so that the work is spread over `limit / 2` arrivals.
 */
export function mergePoints(curve: Curve, points: readonly CurvePoint[], limit = 2000): void {
  for (const point of points) put(curve, point)
  if (curve.steps.length > limit) {
    const thinned = thin(curve, Math.floor(limit / 2))
    curve.steps = thinned.steps
    curve.values = thinned.values
    curve.width = thinned.width
  }
}

/**
 * At most about `target` points of a curve: of each bucket the lowest, the highest and any value that is not finite,
 * because a spike or a NaN is what people look for.
 */
export function thin(curve: Curve, target: number): Curve {
  const count = curve.steps.length
  if (count <= target || target < 4) return curve
  const kept = new Set<number>([0, count - 1])
  const buckets = Math.floor((target - 2) / 2)
  for (let bucket = 0; bucket < buckets; bucket++) {
    const from = 1 + Math.floor((bucket * (count - 2)) / buckets)
    const to = 1 + Math.floor(((bucket + 1) * (count - 2)) / buckets)
    for (const index of extremes(curve.values, from, to)) kept.add(index)
  }
  const indices = [...kept].sort((a, b) => a - b)
  const span = (curve.steps.at(-1) ?? 0) - (curve.steps[0] ?? 0)
  const width = Math.max(curve.width ?? 1, Math.ceil(span / buckets))
  return { steps: pick(curve.steps, indices), values: pick(curve.values, indices), width }
}

function pick(column: readonly number[], indices: readonly number[]): number[] {
  return indices.map((index) => column[index] ?? NaN)
}

/** Indices of the lowest, the highest and the first non-finite value in [from, to). */
function extremes(values: readonly number[], from: number, to: number): number[] {
  let low = -1
  let high = -1
  let broken = -1
  for (let index = from; index < to; index++) {
    const value = values[index] ?? NaN
    if (!Number.isFinite(value)) {
      if (broken < 0) broken = index
      continue
    }
    if (low < 0 || value < (values[low] ?? Infinity)) low = index
    if (high < 0 || value > (values[high] ?? -Infinity)) high = index
  }
  return [low, high, broken].filter((index) => index >= 0)
}

/** The last finite value of a curve, or undefined. */
export function lastValue(curve: Curve): number | undefined {
  return curve.values.findLast((value) => Number.isFinite(value))
}
