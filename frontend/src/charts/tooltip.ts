/** The tooltip of a metric chart, built from DOM nodes so that run names need no escaping. */
import { formatNumber } from '@/format/numbers'
import { type DrawnLine, nearest } from './lines'

function element(tag: string, className: string, text = ''): HTMLElement {
  const node = document.createElement(tag)
  node.className = className
  node.textContent = text
  return node
}

/** Words for what a chart shows at a place. */
export interface TooltipWords {
  /** A place on the axis. */
  sayX: (x: number) => string
  sayStep: (step: number) => string
  /** One standard deviation. */
  sayDeviation?: (value: number) => string
}

/** A mark stands where its own step was measured: at the nearest point of any line. */
function stoodAt(lines: readonly DrawnLine[], markX: number, x: number): boolean {
  return markX === x || lines.some((line) => line.raw.length > 0 && line.raw[nearest(line.raw, markX)]?.[0] === x)
}

/** Where the point of a line lies that is shown at `x`: empty where the heading says so already. */
function placeOf(line: DrawnLine, at: number, x: number, words: TooltipWords): string {
  const exactX = line.raw[at]?.[0] ?? x
  const step = line.steps?.[at]
  const place = exactX === x ? [] : [words.sayX(exactX)]
  return [...(step === undefined ? [] : [words.sayStep(step)]), ...place].join(', ')
}

interface Found {
  /** Index of the point that is shown. */
  at: number
  /** Measured at `x`, somewhere in the same stretch of a thinned curve, nearby, or not at all. */
  how: 'here' | 'about' | 'near' | 'absent'
  place: string
}

/** The step at `x` of a line that was measured there and lies on the same clock. */
function stepAt(lines: readonly DrawnLine[], line: DrawnLine, x: number): number | null {
  if (line.clock === null) return x
  for (const other of lines) {
    if (other.clock !== line.clock || other.raw.length === 0) continue
    const at = nearest(other.raw, x)
    if (other.raw[at]?.[0] === x) return other.steps?.[at] ?? null
  }
  return null
}

function isWithin(line: DrawnLine, x: number): boolean {
  return x >= (line.raw[0]?.[0] ?? x) && x <= (line.raw.at(-1)?.[0] ?? x)
}

/** The point of a line that is shown at `x`; of lines on one clock, steps are compared, and places of others. */
function findPoint(lines: readonly DrawnLine[], line: DrawnLine, x: number, words: TooltipWords | null): Found {
  const at = nearest(line.raw, x)
  const place = words === null ? '' : placeOf(line, at, x, words)
  const exactX = line.raw[at]?.[0] ?? x
  if (exactX === x || place === '') return { at, how: 'here', place }
  const step = stepAt(lines, line, x)
  if (step === null || words === null) return { at, how: isWithin(line, x) ? 'near' : 'absent', place }
  const steps = line.steps?.map((one): [number, number] => [one, 0]) ?? line.raw
  const nearby = nearest(steps, step)
  const measured = steps[nearby]?.[0] ?? step
  if (measured === step) return { at: nearby, how: 'here', place: line.steps === null ? '' : words.sayStep(step) }
  const isSameStretch = line.width > 1 && Math.abs(measured - step) <= line.width && isWithin(line, x)
  const say = line.clock === null ? words.sayX : words.sayStep
  return { at: nearby, how: isSameStretch ? 'about' : 'absent', place: say(measured) }
}

/**
 * One row a line: swatch, name, smoothed value, raw value, deviation, and where it was measured unless that is at `x`.
 *
 * A line that was not measured at the step `x` shows a dash, and its nearest point behind it; one that is thinned out
 * there, about what it was. On an axis of time or tokens, where the points of two runs hardly ever meet, only a line
 * that does not reach as far as `x`, or lies on the same clock as one that was measured there, does so.
 */
export function metricTooltip(
  lines: readonly DrawnLine[],
  colors: readonly string[],
  x: number,
  heading: string,
  words: TooltipWords | null = null,
  marks: readonly { x: number; label: string }[] = [],
): HTMLElement {
  const root = element('div', 'chart-tooltip')
  root.append(element('div', 'chart-tooltip-heading', heading))
  for (const mark of marks) if (stoodAt(lines, mark.x, x)) root.append(element('div', 'chart-tooltip-mark', mark.label))
  lines.forEach((line, index) => {
    if (line.raw.length === 0) return
    const { at, how, place } = findPoint(lines, line, x, words)
    const exactX = line.raw[at]?.[0] ?? x
    const broken = line.broken.find(([brokenX]) => brokenX === exactX)
    const raw = broken !== undefined ? formatNumber(broken[1]) : formatNumber(line.raw[at]?.[1])
    const row = element('div', 'chart-tooltip-row')
    const swatch = element('span', 'chart-swatch')
    swatch.style.background = line.look?.color ?? colors[index % colors.length] ?? ''
    row.append(swatch)
    // The chart's own title says what a single line is.
    if (lines.length > 1) row.append(element('span', 'chart-tooltip-name', line.label))
    root.append(row)
    if (how === 'absent') {
      row.append(
        element('strong', 'chart-tooltip-value', '–'),
        element('span', 'chart-tooltip-at', `(${place}: ${raw})`),
      )
      return
    }
    const smoothed = line.smoothed?.[at]?.[1]
    const value = smoothed == null ? raw : formatNumber(smoothed)
    row.append(element('strong', 'chart-tooltip-value', how === 'about' ? `≈ ${value}` : value))
    if (smoothed != null) row.append(element('span', 'chart-tooltip-raw', raw))
    const deviation = line.deviations?.[at]
    if (deviation !== undefined) {
      row.append(element('span', 'chart-tooltip-deviation', words?.sayDeviation?.(deviation) ?? `± ${deviation}`))
    }
    if (place !== '') row.append(element('span', 'chart-tooltip-at', `(${place})`))
  })
  return root
}
