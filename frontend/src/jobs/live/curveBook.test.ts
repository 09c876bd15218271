import { describe, expect, it } from 'vitest'

import type { MetricSeries } from '../types'
import { createCurveBook, toCurve } from './curveBook'

function seriesOf(key: string, points: [number, number | null][]): MetricSeries {
  return {
    key,
    steps: points.map(([step]) => step),
    values: points.map(([, value]) => value),
    non_finite: [],
    total_points: points.length,
    is_downsampled: false,
    stretch_steps: 1,
  }
}

function reported(
  step: number,
  values: Record<string, number | null>,
  nonFinite: Record<string, 'nan' | 'inf' | '-inf'> = {},
) {
  return { step, values, non_finite: nonFinite }
}

describe('a series from the server', () => {
  it('gets its NaN and infinities back', () => {
    const series: MetricSeries = {
      ...seriesOf('loss', [
        [1, 0.5],
        [2, null],
        [3, null],
      ]),
      non_finite: [
        { step: 2, value: 'nan' },
        { step: 3, value: 'inf' },
      ],
    }

    expect(toCurve(series).values).toEqual([0.5, NaN, Infinity])
  })
})

describe('the curves of a run', () => {
  it('continue with what the stream brings', () => {
    const book = createCurveBook()
    book.claim(['loss'])
    book.fill([seriesOf('loss', [[1, 3]])])

    book.append(reported(2, { loss: 2, other: 9 }))

    expect(book.flush()).toBe(true)
    expect(book.curves.get('loss')).toEqual({ steps: [1, 2], values: [3, 2] })
    expect(book.curves.has('other')).toBe(false)
  })

  it('keep points that were streamed while the server was still asked', () => {
    const book = createCurveBook()
    book.claim(['loss'])
    book.append(reported(3, { loss: 1 }))
    book.flush()

    book.fill([
      seriesOf('loss', [
        [1, 3],
        [2, 2],
      ]),
    ])
    book.flush()

    expect(book.curves.get('loss')).toEqual({ steps: [1, 2, 3], values: [3, 2, 1] })
  })

  it('ask the server for a key once', () => {
    const book = createCurveBook()

    expect(book.claim(['loss', 'kl'])).toEqual(['loss', 'kl'])
    expect(book.claim(['loss', 'entropy'])).toEqual(['entropy'])
  })

  it('can be asked for again when loading failed', () => {
    const book = createCurveBook()
    book.claim(['loss'])

    book.release(['loss'])

    expect(book.claim(['loss'])).toEqual(['loss'])
  })

  it('know the latest value of metrics that nobody charts', () => {
    const book = createCurveBook()

    book.append(reported(4, { kl: null }, { kl: 'nan' }))

    expect(book.latest.get('kl')).toEqual({ step: 4, value: NaN })
  })

  it('report that nothing changed when nothing came', () => {
    expect(createCurveBook().flush()).toBe(false)
  })
})
