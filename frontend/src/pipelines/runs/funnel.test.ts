import { describe, expect, it } from 'vitest'

import { funnelBars } from './funnel'

describe('the funnel', () => {
  it('says how many rows each step took', () => {
    const bars = funnelBars([
      { step: null, rows: 100 },
      { step: 'html', rows: 80 },
      { step: 'split', rows: 80 },
    ])
    expect(bars.map(({ delta, width, previous }) => [delta, width, previous])).toEqual([
      [0, 1, 1],
      [-20, 0.8, 1],
      [0, 0.8, 0.8],
    ])
  })

  it('takes steps that make more rows, and none at all', () => {
    expect(
      funnelBars([
        { step: null, rows: 10 },
        { step: 'convert', rows: 20 },
      ]).map((bar) => bar.delta),
    ).toEqual([0, 10])
    expect(funnelBars([{ step: null, rows: 0 }])[0]?.width).toBe(0)
    expect(funnelBars([])).toEqual([])
  })
})
