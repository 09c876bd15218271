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

    const rows = metricTooltip(
      [
        drawn(
          'a',
          Array.from({ length: 30 }, () => 0),
        ),
        sparse,
      ],
      ['red'],
      16,
      '',
      { sayX: (x) => `step ${x}`, sayStep: String },
    ).querySelectorAll('.chart-tooltip-row')

    expect(rows[0]?.querySelector('.chart-tooltip-at')).toBeNull()
    expect(rows[1]?.querySelector('.chart-tooltip-at')?.textContent).toBe('(step 20: 2)')
    expect(rows[1]?.querySelector('.chart-tooltip-value')?.textContent).toBe('–')
  })

  describe('on an axis of time', () => {
    const words = { sayX: (x: number) => `${x} min`, sayStep: (step: number) => `step ${step}` }
    const run = (label: string, steps: number[], values: number[], minutes: number) =>
      drawLine({ id: label, label, curve: { steps, values }, clock: (step) => step * minutes }, 'time', 0, false)
    const places = (tooltip: HTMLElement) =>
      [...tooltip.querySelectorAll('.chart-tooltip-row')].map((row) => [
        row.querySelector('.chart-tooltip-value')?.textContent,
        row.querySelector('.chart-tooltip-at')?.textContent,
      ])

    it('names the step at which each value was measured, and its time where that is another', () => {
      const lines = [run('a', [1, 2, 3], [5, 6, 7], 2), run('b', [1, 2], [8, 9], 3)]

      expect(places(metricTooltip(lines, ['red'], 4, '4 min', words))).toEqual([
        ['6', '(step 2)'],
        ['8', '(step 1, 3 min)'],
      ])
    })

    it('shows a dash for a line that does not reach so far', () => {
      expect(
        places(metricTooltip([run('a', [1, 20], [5, 6], 2), run('b', [1, 2], [8, 9], 3)], ['red'], 40, '', words)),
      ).toEqual([
        ['6', '(step 20)'],
        ['–', '(step 2, 6 min: 9)'],
      ])
    })

    it('compares steps, and not places, of lines on the same clock', () => {
      const clock = (step: number) => step * 2
      const on = (label: string, steps: number[], values: number[]) =>
        drawLine({ id: label, label, curve: { steps, values }, clock }, 'time', 0, false)
      const lines = [on('training', [18, 19, 20, 21], [1, 2, 3, 4]), on('held out', [10, 20, 30], [5, 3.648, 2])]

      expect(places(metricTooltip(lines, ['red'], 38, '', words))[1]).toEqual(['–', '(step 20: 3.648)'])
      expect(places(metricTooltip(lines, ['red'], 40, '', words))).toEqual([
        ['3', '(step 20)'],
        ['3.648', '(step 20)'],
      ])
    })

    it('names no step where the line lies over moments', () => {
      const line = drawLine({ id: 'a', label: 'a', curve: { steps: [1000, 2000], values: [1, 2] } }, 'wall', 0, false)

      expect(places(metricTooltip([line], ['red'], 2000, '', words))).toEqual([['2', undefined]])
    })
  })

  describe('of thinned curves', () => {
    const words = { sayX: (x: number) => `step ${x}`, sayStep: (step: number) => `step ${step}` }
    const thinned = (label: string, steps: number[], width?: number) =>
      drawLine({ id: label, label, curve: { steps, values: steps.map((step) => step / 100), width } }, 'step', 0, false)
    const second = (x: number, lines: Parameters<typeof metricTooltip>[0]) => {
      const row = metricTooltip(lines, ['red'], x, '', words).querySelectorAll('.chart-tooltip-row')[1]
      return [
        row?.querySelector('.chart-tooltip-value')?.textContent,
        row?.querySelector('.chart-tooltip-at')?.textContent,
      ]
    }

    it('says about what was measured in the same stretch, and at which step', () => {
      const lines = [thinned('a', [1, 110, 140, 900], 64), thinned('b', [1, 100, 160, 500], 64)]

      expect(second(110, lines)).toEqual(['≈ 1', '(step 100)'])
      expect(second(900, lines)).toEqual(['–', '(step 500: 5)'])
    })

    it('says nothing of a complete curve that was not measured there', () => {
      expect(second(110, [thinned('a', [1, 110], 64), thinned('b', [1, 100, 160])])).toEqual(['–', '(step 100: 1)'])
    })
  })

  it('has the deviation of a mean beside it', () => {
    const mean = drawLine(
      { id: 'm', label: 'm', curve: { steps: [1, 2], values: [1, 2] }, deviations: [0.1, 0.088] },
      'step',
      0,
      true,
    )
    const words = { sayX: String, sayStep: String, sayDeviation: (value: number) => `± ${value} SD` }

    expect(metricTooltip([mean], ['red'], 2, '', words).querySelector('.chart-tooltip-deviation')?.textContent).toBe(
      '± 0.088 SD',
    )
  })

  it('says what happened at the step', () => {
    const say = (x: number) =>
      metricTooltip([drawn('run', [1, 2, 3])], ['red'], x, '', null, [{ x: 1, label: 'attempt 2' }]).querySelector(
        '.chart-tooltip-mark',
      )?.textContent

    expect([say(1), say(2)]).toEqual(['attempt 2', undefined])
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
