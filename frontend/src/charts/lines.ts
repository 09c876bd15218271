/** What a metric chart draws: smoothed and raw points, gaps, and marks for values that are no number. */
import type { Curve } from './curve'
import { smooth } from './ema'

/** One curve in a chart, usually one run's. */
export interface ChartLine {
  id: string
  label: string
  curve: Curve
  /** Training time up to a step; without it the line has no place on the time axis. */
  clock?: ((step: number) => number) | null
  /** How it is drawn where its place among the lines does not say so: the same in all charts of a page. */
  look?: LineLook
  /** Never smoothed: what is set (a learning rate), or measured now and then (held-out values). */
  isExact?: boolean
  /** Least and greatest y around each value, for the mean of several runs. */
  band?: { low: readonly number[]; high: readonly number[] }
  /** Standard deviation at each step, for the mean of several runs. */
  deviations?: readonly number[]
}

export interface LineLook {
  color: string
  dash: 'solid' | 'dashed' | 'dotted'
}

/** Something that happened at a step, drawn as an upright line. */
export interface ChartMark {
  step: number
  label: string
  isCritical: boolean
  /** Where another attempt went on: no alarm. */
  isPlain?: boolean
  /** The line that it belongs to, where a chart has several; its clock places it and its colour is drawn. */
  line?: string
  color?: string
}

/** Marks of one place share a line and a label, the gravest first: labels on each other could not be read. */
export function joinMarks<Mark extends ChartMark & { x: number }>(marks: readonly Mark[]): Mark[] {
  const weight = (mark: ChartMark) => (mark.isCritical ? 0 : mark.isPlain === true ? 2 : 1)
  const places = new Map<number, Mark>()
  for (const mark of [...marks].sort((a, b) => weight(a) - weight(b))) {
    const first = places.get(mark.x)
    places.set(mark.x, first === undefined ? mark : { ...first, label: `${first.label} · ${mark.label}` })
  }
  return [...places.values()]
}

/** Steps; training time since the start; tokens so far; the time of day. */
export type XAxis = 'step' | 'time' | 'tokens' | 'wall'

/** [x, y]; y is null where the line is interrupted. */
export type Dot = [number, number | null]

export interface DrawnLine {
  id: string
  label: string
  /** The step of each point, where its place on the axis is not its step. */
  steps: readonly number[] | null
  /** Places the steps; lines of one run share it. */
  clock: ((step: number) => number) | null
  /** Steps of a stretch of which only the extremes are drawn; 1 where every measurement is. */
  width: number
  /** Every point as reported. */
  raw: Dot[]
  /** The same points smoothed, or null when smoothing is off. */
  smoothed: Dot[] | null
  /** Points with no neighbour to draw a line to. */
  lonely: [number, number][]
  /** x of each value that is not finite, with the value. */
  broken: [number, number][]
  /** Points that a logarithmic axis cannot show. */
  belowZero: number
  look?: LineLook
  deviations?: readonly number[]
  /** [x, least, greatest]. */
  band?: [number, number, number][]
}

/** Steps, or training time. */
export function abscissae(line: ChartLine, axis: XAxis): number[] {
  const clock = line.clock ?? null
  return axis === 'step' || clock === null ? line.curve.steps : line.curve.steps.map(clock)
}

/** A curve of up to this many steps is smoothed step by step, a longer one by as much of its length. */
const SMOOTHED_STEPS = 500

/** Distance of each point to the one before, in the unit of the smoothing. */
function gapsOf(steps: readonly number[]): number[] {
  const span = (steps.at(-1) ?? 0) - (steps[0] ?? 0)
  const unit = Math.max(1, span / SMOOTHED_STEPS)
  return steps.map((step, index) => (index === 0 ? 1 : (step - (steps[index - 1] ?? step)) / unit))
}

/** The step of all points whose place is nearest to x; null without a point. */
export function nearestStep(lines: readonly ChartLine[], axis: XAxis, x: number): number | null {
  let nearest: { step: number; distance: number } | null = null
  for (const line of lines) {
    for (const [index, place] of abscissae(line, axis).entries()) {
      const distance = Math.abs(place - x)
      if (nearest === null || distance < nearest.distance) nearest = { step: line.curve.steps[index] ?? 0, distance }
    }
  }
  return nearest?.step ?? null
}

export function drawLine(line: ChartLine, axis: XAxis, smoothing: number, isLog: boolean): DrawnLine {
  const x = abscissae(line, axis)
  const values = line.curve.values
  const drawable = (value: number) => (Number.isFinite(value) && !(isLog && value <= 0) ? value : null)
  const dots = (column: readonly number[]): Dot[] => column.map((value, index) => [x[index] ?? 0, drawable(value)])
  const raw = dots(values)
  const smoothed =
    smoothing > 0 && line.isExact !== true ? dots(smooth(values, smoothing, gapsOf(line.curve.steps))) : null
  return {
    id: line.id,
    label: line.label,
    steps: axis === 'step' || line.clock == null ? null : line.curve.steps,
    clock: axis === 'step' ? null : (line.clock ?? null),
    width: line.curve.width ?? 1,
    deviations: line.deviations,
    raw,
    smoothed,
    lonely: lonelyDots(smoothed ?? raw),
    broken: values.flatMap((value, index): [number, number][] =>
      Number.isFinite(value) ? [] : [[x[index] ?? 0, value]],
    ),
    belowZero: isLog ? values.filter((value) => value <= 0).length : 0,
    look: line.look,
    band:
      line.band === undefined || isLog
        ? undefined
        : x.map((at, index) => [at, line.band?.low[index] ?? NaN, line.band?.high[index] ?? NaN]),
  }
}

/** Up to this many points each get a dot, because a line alone hides where they are. */
const DOTTED_UP_TO = 30

function lonelyDots(dots: readonly Dot[]): [number, number][] {
  return dots.flatMap(([x, y], index): [number, number][] => {
    if (y === null) return []
    const hasNeighbour = (dots[index - 1]?.[1] ?? null) !== null || (dots[index + 1]?.[1] ?? null) !== null
    return hasNeighbour && dots.length > DOTTED_UP_TO ? [] : [[x, y]]
  })
}

/** Smallest range that holds the x of all lines, or null without points. */
export function xDomain(lines: readonly ChartLine[], axis: XAxis): [number, number] | null {
  let low = Infinity
  let high = -Infinity
  for (const line of lines) {
    for (const x of abscissae(line, axis)) {
      if (x < low) low = x
      if (x > high) high = x
    }
  }
  return low <= high ? [low, high] : null
}

/** Index of the dot nearest to x. */
export function nearest(dots: readonly Dot[], x: number): number {
  let low = 0
  let high = dots.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((dots[middle]?.[0] ?? Infinity) < x) low = middle + 1
    else high = middle
  }
  const before = dots[low - 1]
  const here = dots[low]
  if (before && here && Math.abs(before[0] - x) <= Math.abs(here[0] - x)) return low - 1
  return low
}

export interface LineSummary {
  count: number
  firstX: number
  lastX: number
  last: number
  lowest: number
  lowestX: number
  highest: number
  highestX: number
  brokenCount: number
}

/** The figures of a curve that its description in words needs, or null without a finite value. */
export function summarise(curve: Curve): LineSummary | null {
  let summary: LineSummary | null = null
  let brokenCount = 0
  curve.values.forEach((value, index) => {
    const x = curve.steps[index] ?? 0
    if (!Number.isFinite(value)) {
      brokenCount += 1
      return
    }
    if (summary === null) {
      summary = {
        count: 0,
        firstX: x,
        lastX: x,
        last: value,
        lowest: value,
        lowestX: x,
        highest: value,
        highestX: x,
        brokenCount: 0,
      }
    }
    summary.count += 1
    summary.lastX = x
    summary.last = value
    if (value < summary.lowest) [summary.lowest, summary.lowestX] = [value, x]
    if (value > summary.highest) [summary.highest, summary.highestX] = [value, x]
  })
  const found = summary as LineSummary | null
  if (found !== null) found.brokenCount = brokenCount
  return found
}

/** All points of the lines as a table, for a file: one row a step or moment, one column a line; empty where nothing was measured. */
export function toCsv(lines: readonly ChartLine[], isOfTime = false): string {
  const quote = (text: string) => `"${text.replaceAll('"', '""')}"`
  const columns = lines.map((line) => new Map(line.curve.steps.map((step, index) => [step, line.curve.values[index]])))
  const steps = [...new Set(lines.flatMap((line) => line.curve.steps))].sort((a, b) => a - b)
  const rows = steps.map((step) =>
    [isOfTime ? new Date(step).toISOString() : step, ...columns.map((column) => column.get(step) ?? '')].join(','),
  )
  return `${[isOfTime ? 'time' : 'step', ...lines.map((line) => quote(lines.length === 1 ? line.id : line.label))].join(',')}\n${rows.join('\n')}\n`
}
