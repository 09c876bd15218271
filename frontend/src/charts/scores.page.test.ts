import { describe, expect, it } from 'vitest'

import { commonAxes, inOrder, scoreAxis, type ScorePoint, valueRange } from './scores'
import { scoreTooltip } from './scoreTooltip'

function point(x: number, value: number, low: number | null = null, high: number | null = null): ScorePoint {
  return { id: `ev_${x}`, x, label: String(x), value, low, high }
}

describe('the y axis of scores', () => {
  it('holds the intervals, with air, and stays within what a share can be', () => {
    const range = valueRange([{ id: 'a', label: 'a', points: [point(1, 0.5, 0.42, 0.58), point(2, 0.97, 0.9, 1)] }])

    expect(range).toEqual([0.42, 1])
    const [low, high] = scoreAxis(range)
    expect(low).toBeLessThan(0.42)
    expect(high).toBe(1)
  })

  it('never falls together, however alike the scores are', () => {
    const [low, high] = scoreAxis([0, 0])

    expect(low).toBe(0)
    expect(high).toBeGreaterThan(0)
  })

  it('follows scores that are no shares', () => {
    const [low, high] = scoreAxis([12, 14])

    expect(low).toBeLessThan(12)
    expect(high).toBeGreaterThan(14)
  })

  it('runs from nothing to all without points', () => {
    expect(scoreAxis(valueRange([]))).toEqual([0, 1])
  })
})

describe('the axes of a radar', () => {
  it('are those that everyone was measured on; the others are named', () => {
    const shapes = [
      { id: 'a', label: 'a', values: [0.1, 0.2, null] },
      { id: 'b', label: 'b', values: [0.3, 0, 0.4] },
    ]

    expect(commonAxes(['gsm8k', 'math', 'mmlu'], shapes)).toEqual({ kept: [0, 1], leftOut: ['mmlu'] })
  })

  it('leave out what nobody has a number for', () => {
    expect(commonAxes(['gsm8k'], [{ id: 'a', label: 'a', values: [] }])).toEqual({ kept: [], leftOut: ['gsm8k'] })
  })
})

describe('measurements', () => {
  it('stand in the order of their steps, and those of one step in the order they came', () => {
    const points = [point(2, 0.2), { ...point(1, 0.1), id: 'older' }, { ...point(1, 0.15), id: 'newer' }]

    expect(inOrder(points).map((one) => one.id)).toEqual(['older', 'newer', 'ev_2'])
  })

  it('are named as text in the tooltip, whatever a name holds', () => {
    const tooltip = scoreTooltip('Step 1', [
      { name: '<img src=x onerror=alert(1)>', value: '50%', detail: '40% – 60%' },
    ])

    expect(tooltip.querySelector('img')).toBeNull()
    expect(tooltip.textContent).toContain('40% – 60%')
  })
})
