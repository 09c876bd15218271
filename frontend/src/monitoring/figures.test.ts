import { describe, expect, it } from 'vitest'

import { chartsOf, gpuNumbers, lastOf, shareOf, spreadOverRange } from './figures'
import { placeColumn, stepClock } from './placement'

const NODE = {
  figures: {
    cpu_percent: [10, null, 30],
    memory_used_bytes: [1, 2, null],
    memory_total_bytes: [4, 4, 4],
    gpu0_power_watts: [300, 310, 320],
    gpu10_power_watts: [1, 1, 1],
    gpu2_utilization_percent: [null, null, null],
  },
}

describe('the figures of a node', () => {
  it('have a chart where something was measured', () => {
    expect(chartsOf(NODE).map((chart) => [chart.name, chart.lines.map((line) => line.id)])).toEqual([
      ['cpu', ['cpu_percent']],
      ['memory', ['memory_used_bytes']],
      ['gpuPower', ['gpu0_power_watts', 'gpu10_power_watts']],
    ])
    expect(gpuNumbers(NODE)).toEqual([0, 2, 10])
  })

  it('are shares only where both parts were measured', () => {
    expect(shareOf(NODE, 'memory_used_bytes', 'memory_total_bytes')).toEqual([25, 50, null])
    expect(lastOf(NODE, 'memory_used_bytes')).toBe(2)
  })
})

describe('a moment on the axis of steps', () => {
  const at = (second: number) => new Date(second * 1000).toISOString()
  const clock = stepClock({ steps: [1, 2, 3, 4], at: [10, 20, 100, 110].map(at), attempts: [1, 1, 2, 2] })

  it('lies between the steps around it', () => {
    expect([10, 15, 20, 105].map((second) => clock(second * 1000))).toEqual([1, 1.5, 2, 3.5])
  })

  it('has no place before the first step, after the last one and between attempts', () => {
    expect([9, 60, 111].map((second) => clock(second * 1000))).toEqual([null, null, null])
  })

  it('leaves out what was not measured', () => {
    expect(placeColumn([10, 15, 60, 105].map(at), [2, null, 3, 4], clock, 2)).toEqual({
      steps: [1, 3.5],
      values: [1, 2],
    })
  })
})

describe('a column over a range', () => {
  const range = { since: '2026-01-01T00:00:00Z', until: '2026-01-01T01:00:00Z', stretch_s: 600 }

  it('has a place for each stretch: half an hour of samples fills half of an hour', () => {
    const values = spreadOverRange(
      ['2026-01-01T00:30:00Z', '2026-01-01T00:40:00Z', '2026-01-01T00:50:00Z'],
      [1, null, 3],
      range,
    )

    expect(values).toEqual([NaN, NaN, NaN, 1, NaN, 3])
  })

  it('leaves out what was measured before it', () => {
    expect(spreadOverRange(['2025-12-31T23:00:00Z', '2026-01-01T01:00:00Z'], [1, 2], range)).toEqual([
      NaN,
      NaN,
      NaN,
      NaN,
      NaN,
      2,
    ])
  })
})
