import { describe, expect, it } from 'vitest'

import type { Curve } from './curve'
import { type ChartLine, drawLine, nearest, summarise, xDomain, toCsv } from './lines'

function lineOf(curve: Partial<Curve> & { values: number[] }): ChartLine {
  const steps = curve.steps ?? curve.values.map((_, index) => index)
  return { id: 'a', label: 'run a', curve: { steps, values: curve.values } }
}

describe('a drawn line', () => {
  it('interrupts the line at a NaN and marks it instead of joining its neighbours', () => {
    const drawn = drawLine(lineOf({ values: [1, NaN, 3] }), 'step', 0, false)

    expect(drawn.raw).toEqual([
      [0, 1],
      [1, null],
      [2, 3],
    ])
    expect(drawn.broken).toEqual([[1, NaN]])
  })

  it('keeps the raw points beside the smoothed ones', () => {
    const drawn = drawLine(lineOf({ values: [0, 1] }), 'step', 0.5, false)

    expect(drawn.raw).toEqual([
      [0, 0],
      [1, 1],
    ])
    expect(drawn.smoothed?.[1]?.[1]).toBeCloseTo(0.5 / 0.75)
  })

  it('leaves out what a logarithmic axis cannot show, and says how much', () => {
    const drawn = drawLine(lineOf({ values: [1, 0, -2, 10] }), 'step', 0, true)

    expect(drawn.raw.map(([, y]) => y)).toEqual([1, null, null, 10])
    expect(drawn.belowZero).toBe(2)
    expect(drawn.broken).toEqual([])
  })

  it('lies at seconds of training on the time axis', () => {
    const drawn = drawLine({ ...lineOf({ values: [1, 2, 3] }), clock: (step) => step * 1.5 }, 'time', 0, false)

    expect(drawn.raw).toEqual([
      [0, 1],
      [1.5, 2],
      [3, 3],
    ])
  })

  it('gives a dot to points without a neighbour in a long curve', () => {
    const values = Array.from({ length: 50 }, () => 1)
    values[10] = NaN
    values[12] = NaN

    expect(drawLine(lineOf({ values }), 'step', 0, false).lonely).toEqual([[11, 1]])
  })

  it('gives every point a dot while there are few', () => {
    expect(drawLine(lineOf({ values: [4, 5] }), 'step', 0, false).lonely).toEqual([
      [0, 4],
      [1, 5],
    ])
  })
})

describe('the common x axis', () => {
  it('spans all lines', () => {
    expect(xDomain([lineOf({ values: [1, 2], steps: [3, 8] }), lineOf({ values: [1], steps: [20] })], 'step')).toEqual([
      3, 20,
    ])
  })

  it('is null without points', () => {
    expect(xDomain([lineOf({ values: [] })], 'step')).toBeNull()
  })

  it('copes with a hundred thousand points', () => {
    const values = Array.from({ length: 100_000 }, (_, index) => index)

    expect(xDomain([lineOf({ values })], 'step')).toEqual([0, 99_999])
  })
})

describe('the nearest point', () => {
  it.each([
    [-5, 0],
    [4, 0],
    [6, 1],
    [99, 2],
  ])('to %d is number %d', (x, index) => {
    expect(
      nearest(
        [
          [0, 1],
          [10, 1],
          [20, 1],
        ],
        x,
      ),
    ).toBe(index)
  })
})

describe('the summary of a curve', () => {
  it('finds last, lowest and highest values with their steps', () => {
    expect(summarise(lineOf({ values: [3, NaN, -1, 7, 5] }).curve)).toEqual({
      count: 4,
      firstX: 0,
      lastX: 4,
      last: 5,
      lowest: -1,
      lowestX: 2,
      highest: 7,
      highestX: 3,
      brokenCount: 1,
    })
  })

  it('is null when no value is a number', () => {
    expect(summarise(lineOf({ values: [NaN] }).curve)).toBeNull()
  })
})

describe('a table of lines', () => {
  it('has one row a step, empty where a line was not measured', () => {
    const lines = [
      { id: 'a', label: 'run "a"', curve: { steps: [1, 2], values: [0.5, NaN] } },
      { id: 'b', label: 'b', curve: { steps: [2], values: [3] } },
    ]

    expect(toCsv(lines)).toBe('step,"run ""a""","b"\n1,0.5,\n2,NaN,3\n')
  })
})

describe('a line that is exact', () => {
  it('is never smoothed', () => {
    const curve = { steps: [0, 1], values: [0, 1] }

    expect(drawLine({ id: 'lr', label: 'lr', curve, isExact: true }, 'step', 0.9, false).smoothed).toBeNull()
    expect(drawLine({ id: 'loss', label: 'loss', curve }, 'step', 0.9, false).smoothed).not.toBeNull()
  })
})
