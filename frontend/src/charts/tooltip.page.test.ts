import { describe, expect, it } from 'vitest'

import { drawLine } from './lines'
import { metricTooltip } from './tooltip'

function drawn(label: string, values: number[], smoothing = 0) {
  const steps = values.map((_, index) => index)
  return drawLine({ id: label, label, curve: { steps, values } }, 'step', smoothing, false)
}

describe('the tooltip', () => {
  it('shows the smoothed value first and the raw value beside it', () => {
    const tooltip = metricTooltip([drawn('run', [0, 1], 0.5)], ['red'], 1, 'Step 1')

    expect(tooltip.querySelector('.chart-tooltip-value')?.textContent).toBe('0.6667')
    expect(tooltip.querySelector('.chart-tooltip-raw')?.textContent).toBe('1')
  })

  it('names the runs only where there are several', () => {
    expect(metricTooltip([drawn('run a', [1])], ['red'], 0, '').textContent).not.toContain('run a')
    expect(metricTooltip([drawn('run a', [1]), drawn('run b', [2])], ['red'], 0, '').textContent).toContain('run b')
  })

  it('says where a line was measured that was not measured at the step', () => {
    const sparse = drawLine({ id: 'b', label: 'b', curve: { steps: [10, 20], values: [1, 2] } }, 'step', 0, false)

    const rows = metricTooltip([drawn('a', Array.from({ length: 30 }, () => 0)), sparse], ['red'], 16, '', (x) => `step ${x}`).querySelectorAll('.chart-tooltip-row')

    expect(rows[0]?.querySelector('.chart-tooltip-at')).toBeNull()
    expect(rows[1]?.querySelector('.chart-tooltip-at')?.textContent).toBe('(step 20: 2)')
    expect(rows[1]?.querySelector('.chart-tooltip-value')?.textContent).toBe('–')
  })

  it('names a value that is no number', () => {
    const tooltip = metricTooltip([drawn('run', [0, NaN])], ['red'], 1, 'Step 1')

    expect(tooltip.querySelector('.chart-tooltip-value')?.textContent).toBe('NaN')
  })

  it('shows the name of a run as text, whatever it holds', () => {
    const tooltip = metricTooltip([drawn('<img src=x onerror=alert(1)>', [1]), drawn('b', [1])], ['red'], 0, 'Step 0')

    expect(tooltip.querySelector('img')).toBeNull()
    expect(tooltip.textContent).toContain('<img src=x')
  })
})
