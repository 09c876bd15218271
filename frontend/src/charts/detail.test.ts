import { describe, expect, it } from 'vitest'

import { stretchOf, withDetail } from './detail'

const LINE = { id: 'a', label: 'a', curve: { steps: [0, 10, 20, 30, 40], values: [0, 1, 2, 3, 4], width: 10 } }

describe('the stretch to read', () => {
  it('reaches to the next point on both sides, on any axis', () => {
    expect(stretchOf([LINE], 'step', [12, 28])).toEqual({ from: 10, to: 30 })
    expect(stretchOf([{ ...LINE, clock: (step) => step * 60 }], 'time', [500, 1300])).toEqual({ from: 0, to: 30 })
    expect(stretchOf([LINE], 'step', [12, 18])).toEqual({ from: 0, to: 30 })
  })

  it('is none where every point is drawn already', () => {
    expect(stretchOf([{ ...LINE, curve: { ...LINE.curve, width: undefined } }], 'step', [12, 28])).toBeNull()
    expect(stretchOf([LINE], 'step', [50, 60])).toBeNull()
  })
})

describe('a curve with a part in detail', () => {
  it('keeps its points outside of the part', () => {
    expect(withDetail(LINE.curve, { steps: [10, 15, 20], values: [1, 9, 2] }, { from: 10, to: 20 })).toEqual({
      steps: [0, 10, 15, 20, 30, 40],
      values: [0, 1, 9, 2, 3, 4],
      width: undefined,
    })
    expect(withDetail(LINE.curve, undefined, { from: 10, to: 20 })).toBe(LINE.curve)
  })
})
