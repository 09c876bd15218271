/** The tooltip of charts of scores, built from DOM nodes so that names need no escaping. */

export interface ScoreRow {
  name: string
  value: string
  /** The interval, in words. */
  detail: string
  color?: string
}

function element(tag: string, className: string, text = ''): HTMLElement {
  const node = document.createElement(tag)
  node.className = className
  node.textContent = text
  return node
}

export function scoreTooltip(heading: string, rows: readonly ScoreRow[]): HTMLElement {
  const root = element('div', 'chart-tooltip')
  root.append(element('div', 'chart-tooltip-heading', heading))
  for (const { name, value, detail, color } of rows) {
    const row = element('div', 'chart-tooltip-row')
    if (color !== undefined) {
      const swatch = element('span', 'chart-swatch')
      swatch.style.background = color
      row.append(swatch)
    }
    if (name !== '') row.append(element('span', 'chart-tooltip-name', name))
    row.append(element('strong', 'chart-tooltip-value', value))
    if (detail !== '') row.append(element('span', 'chart-tooltip-raw', detail))
    root.append(row)
  }
  return root
}
