import { describe, expect, it } from 'vitest'

import { type Curve, emptyCurve, lastValue, mergePoints, thin } from './curve'

function curveOf(values: number[], firstStep = 0): Curve {
  return { steps: values.map((_, index) => firstStep + index), values }
}

describe('merging streamed points', () => {
  it('appends points that are newer than all others', () => {
    const curve = curveOf([1, 2])

    mergePoints(curve, [{ step: 2, value: 3 }])

    expect(curve).toEqual({ steps: [0, 1, 2], values: [1, 2, 3] })
  })

  it('lets the later report of a step replace the earlier one, as after a resume', () => {
    const curve = curveOf([1, 2, 3])

    mergePoints(curve, [{ step: 1, value: 20 }])

    expect(curve.values).toEqual([1, 20, 3])
  })

  it('does not change when the same points arrive twice', () => {
    const points = [
      { step: 0, value: 1 },
      { step: 1, value: 2 },
    ]
    const curve = emptyCurve()

    mergePoints(curve, points)
    mergePoints(curve, points)

    expect(curve).toEqual({ steps: [0, 1], values: [1, 2] })
  })

  it('puts points that arrive late where they belong', () => {
    const curve = emptyCurve()

    mergePoints(
      curve,
      [4, 1, 3, 2].map((step) => ({ step, value: step * 10 })),
    )

    expect(curve.steps).toEqual([1, 2, 3, 4])
    expect(curve.values).toEqual([10, 20, 30, 40])
  })

  it('stays within its limit over tens of thousands of points and keeps the spike', () => {
    const curve = emptyCurve()

    for (let batch = 0; batch < 50; batch++) {
      const points = Array.from({ length: 1000 }, (_, index) => {
        const step = batch * 1000 + index
        return { step, value: step === 12_345 ? 999 : Math.sin(step / 100) }
      })
      mergePoints(curve, points, 2000)
    }

    expect(curve.steps.length).toBeLessThanOrEqual(2000)
    expect(curve.steps.at(-1)).toBe(49_999)
    expect(Math.max(...curve.values)).toBe(999)
    expect(curve.steps).toEqual([...curve.steps].sort((a, b) => a - b))
  })
})

describe('thinning a curve', () => {
  it('leaves a short curve alone', () => {
    const curve = curveOf([1, 2, 3])

    expect(thin(curve, 10)).toBe(curve)
  })

  it('keeps the first and last point, the extremes and a NaN', () => {
    const values = Array.from({ length: 1000 }, (_, index) => index % 7)
    values[400] = -50
    values[600] = 80
    values[800] = NaN

    const thinned = thin(curveOf(values), 100)

    expect(thinned.steps.length).toBeLessThanOrEqual(110)
    expect(thinned.steps[0]).toBe(0)
    expect(thinned.steps.at(-1)).toBe(999)
    expect(thinned.values).toContain(-50)
    expect(thinned.values).toContain(80)
    expect(thinned.values.some(Number.isNaN)).toBe(true)
  })

  it('keeps step and value of a point together', () => {
    const thinned = thin(curveOf(Array.from({ length: 500 }, (_, index) => index * 2)), 50)

    thinned.steps.forEach((step, index) => {
      expect(thinned.values[index]).toBe(step * 2)
    })
  })
})

describe('the last value', () => {
  it('is the last one that is a number', () => {
    expect(lastValue(curveOf([1, 2, NaN]))).toBe(2)
    expect(lastValue(curveOf([NaN]))).toBeUndefined()
  })
})
