/** The tooltip of a metric chart, built from DOM nodes so that run names need no escaping. */
import { formatNumber } from './format'
import { type DrawnLine, nearest } from './lines'

function element(tag: string, className: string, text = ''): HTMLElement {
  const node = document.createElement(tag)
  node.className = className
  node.textContent = text
  return node
}

/**
 * One row a line: swatch, name, smoothed value, raw value.
 *
 * A line that was not measured at `x` shows a dash, and behind it its nearest point with `sayX` of where that lies;
 * where x needs no words (null) the nearest point stands for it.
 */
export function metricTooltip(
  lines: readonly DrawnLine[],
  colors: readonly string[],
  x: number,
  heading: string,
  sayX: ((x: number) => string) | null = null,
): HTMLElement {
  const root = element('div', 'chart-tooltip')
  root.append(element('div', 'chart-tooltip-heading', heading))
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
    if (sayX !== null && exactX !== x) {
      row.append(element('strong', 'chart-tooltip-value', '–'), element('span', 'chart-tooltip-at', `(${sayX(exactX)}: ${raw})`))
      root.append(row)
      return
    }
    const smoothed = line.smoothed?.[at]?.[1]
    row.append(element('strong', 'chart-tooltip-value', smoothed == null ? raw : formatNumber(smoothed)))
    if (smoothed != null) row.append(element('span', 'chart-tooltip-raw', raw))
    root.append(row)
  })
  return root
}
