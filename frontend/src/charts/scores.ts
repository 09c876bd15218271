/** Scores with their uncertainty, as charts take them. */

export interface Measured {
  value: number
  /** Ends of the 95 % interval; null where none is known. */
  low: number | null
  high: number | null
}

export interface ScorePoint extends Measured {
  /** Of the evaluation that measured it. */
  id: string
  /** Step, or place in the order of versions. */
  x: number
  /** What stands there: a step, a version, a model. */
  label: string
}

/** One model or job, from its first measurement to its last. */
export interface ScoreLine {
  id: string
  label: string
  points: readonly ScorePoint[]
}

/** What a radar shows of one model: a score for each axis, null where it was not measured. */
export interface RadarShape {
  id: string
  label: string
  values: readonly (number | null)[]
}

/** Whole range that the points of a history need, intervals included; null without points. */
export function valueRange(lines: readonly ScoreLine[]): [number, number] | null {
  const values = lines
    .flatMap((line) => line.points.flatMap((point) => [point.low ?? point.value, point.high ?? point.value]))
    .filter(Number.isFinite)
  return values.length === 0 ? null : [Math.min(...values), Math.max(...values)]
}

/**
 * Ends of a y axis over a range of scores: some air around it, and no further than a share can go.
 *
 * Scores from 0 to 1 keep within [0, 1]; others (a perplexity) get air on both sides.
 */
export function scoreAxis(range: [number, number] | null): [number, number] {
  if (range === null) return [0, 1]
  const [low, high] = range
  const isShare = low >= 0 && high <= 1
  const air = Math.max((high - low) * 0.15, isShare ? 0.02 : Math.abs(high) * 0.05, 1e-6)
  const ends: [number, number] = [low - air, high + air]
  return isShare ? [Math.max(0, Math.floor(ends[0] * 20) / 20), Math.min(1, Math.ceil(ends[1] * 20) / 20)] : ends
}

/** Axes that every shape has a score on, and those that are left out because one has none. */
export function commonAxes(
  axes: readonly string[],
  shapes: readonly RadarShape[],
): { kept: number[]; leftOut: string[] } {
  const isKept = (index: number) => shapes.every((shape) => Number.isFinite(shape.values[index] ?? NaN))
  return {
    kept: axes.flatMap((_, index) => (isKept(index) ? [index] : [])),
    leftOut: axes.filter((_, index) => !isKept(index)),
  }
}

/** Points in the order of the x axis; of two at the same place, both stay, the older first. */
export function inOrder(points: readonly ScorePoint[]): ScorePoint[] {
  return [...points].sort((a, b) => a.x - b.x)
}
