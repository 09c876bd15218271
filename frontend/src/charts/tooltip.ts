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

/**
 * One row a line: swatch, name, smoothed value, raw value, and where it was measured unless that is at `x`.
 *
 * A line that was not measured at the step `x` shows a dash, and its nearest point behind it. On an axis of time or
 * tokens, where the points of two runs hardly ever meet, only a line that does not reach as far as `x` does so.
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
    const at = nearest(line.raw, x)
    const exactX = line.raw[at]?.[0] ?? x
    const broken = line.broken.find(([brokenX]) => brokenX === exactX)
    const raw = broken !== undefined ? formatNumber(broken[1]) : formatNumber(line.raw[at]?.[1])
    const row = element('div', 'chart-tooltip-row')
    const swatch = element('span', 'chart-swatch')
    swatch.style.background = line.look?.color ?? colors[index % colors.length] ?? ''
    row.append(swatch)
    // The chart's own title says what a single line is.
    if (lines.length > 1) row.append(element('span', 'chart-tooltip-name', line.label))
    const place = words === null ? '' : placeOf(line, at, x, words)
    const isAbsent =
      exactX !== x && (line.steps === null || x < (line.raw[0]?.[0] ?? x) || x > (line.raw.at(-1)?.[0] ?? x))
    if (place !== '' && isAbsent) {
      row.append(
        element('strong', 'chart-tooltip-value', '–'),
        element('span', 'chart-tooltip-at', `(${place}: ${raw})`),
      )
      root.append(row)
      return
    }
    const smoothed = line.smoothed?.[at]?.[1]
    row.append(element('strong', 'chart-tooltip-value', smoothed == null ? raw : formatNumber(smoothed)))
    if (smoothed != null) row.append(element('span', 'chart-tooltip-raw', raw))
    if (place !== '') row.append(element('span', 'chart-tooltip-at', `(${place})`))
    root.append(row)
  })
  return root
}
