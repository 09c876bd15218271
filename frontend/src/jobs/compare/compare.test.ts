import { describe, expect, it } from 'vitest'

import type { XAxis } from '@/charts/lines'

import { clockOf, meanOf } from './curves'
import { lookOf } from './looks'
import { csvCell, curvesCsv, differenceTo } from './tables'
import { readView, writeView } from './view'

describe('the comparison in the address', () => {
  it('comes back as it was written', () => {
    const view = {
      ids: ['job_a', 'job_b'],
      cutFrom: null,
      hidden: ['job_b'],
      baseline: 'job_b',
      axis: 'tokens' as const,
      tab: 'metrics' as const,
      keys: ['val/loss', 'a,b'],
      areSeedsJoined: true,
      smoothing: 0.4,
      scales: new Map([['val/loss', { isLog: true, low: '0.1', high: '' }]]),
      metric: 'val/loss',
      take: 'last' as const,
      split: 'train' as const,
      step: 0,
    }

    expect(readView(JSON.parse(JSON.stringify(writeView(view))))).toEqual(view)
  })

  it('takes no more than 20 jobs, and no baseline from outside', () => {
    const ids = Array.from({ length: 30 }, (_, index) => `job_${index}`)

    const view = readView({ ids: [...ids, 'evil'].join(','), baseline: 'job_29', smoothing: '7' })

    expect(view.ids).toHaveLength(20)
    expect([view.baseline, view.smoothing]).toEqual([null, 0])
  })
})

describe('an axis', () => {
  const clock = {
    steps: [1, 2, 3],
    elapsed_s: [2, 4, 6],
    tokens: [10, 30, 60],
    at: ['2026-01-01T00:00:02Z', '2026-01-01T00:00:04Z', '2026-01-01T05:00:00Z'],
  }
  const job = { started_at: '2026-01-01T00:00:00Z', finished_at: '2026-01-01T05:01:00Z' }
  const on = (axis: XAxis, of: typeof clock | null = clock) => {
    const place = clockOf(job, of, axis, 0)
    return place == null ? place : [1, 2, 3].map(place)
  }

  it('has the sums of the server', () => {
    expect([on('tokens'), on('time')]).toEqual([clock.tokens, clock.elapsed_s])
  })

  it('of the time of day keeps the time in which a run stood still, whenever it was closed', () => {
    expect(on('wall')).toEqual(clock.at.map(Date.parse))
  })

  it('has no place for a run that did not report what it takes', () => {
    expect(on('time', null)).toBeUndefined()
    expect(clockOf(job, { ...clock, tokens: null }, 'tokens', 0)).toBeUndefined()
    expect(on('step', null)).toBeNull()
  })
})

describe('the mean of runs', () => {
  it('is that of the steps that all have, with their deviation', () => {
    const mean = meanOf([
      { steps: [0, 1, 2, 4], values: [0, 7, 2, NaN] },
      { steps: [0, 2, 3, 4], values: [2, 6, 9, 1] },
    ])

    expect(mean).toEqual({ curve: { steps: [0, 2], values: [1, 4] }, deviations: [Math.SQRT2, 2 * Math.SQRT2] })
  })

  it('is none for a single run, and none of runs that share no step', () => {
    expect(meanOf([{ steps: [0], values: [1] }])).toBeNull()
    expect(
      meanOf([
        { steps: [0], values: [1] },
        { steps: [5], values: [1] },
      ]),
    ).toBeNull()
  })
})

describe('the tables', () => {
  it('tell better from worse by the metric', () => {
    expect(differenceTo(0.9, 1, 'min')).toMatchObject({ isBetter: true })
    expect(differenceTo(0.9, 1, null)).toMatchObject({ isBetter: null })
    expect(differenceTo(1.1, 1, 'max')?.share).toBeCloseTo(0.1)
    expect(differenceTo(1, 0, 'max')?.share).toBeNull()
    expect(differenceTo(null, 1, 'max')).toBeNull()
  })

  it('are written so that a spreadsheet reads them and runs nothing', () => {
    expect(['a,b', 'a"b', '=1+1', -1, undefined, { a: 1 }].map(csvCell)).toEqual([
      '"a,b"',
      '"a""b"',
      "'=1+1",
      '-1',
      '',
      '"{""a"":1}"',
    ])
    expect(
      curvesCsv(
        [{ id: 'job_a', name: 'a' }],
        new Map([['job_a', new Map([['loss', { steps: [1], values: [0.5] }]])]]),
        ['loss'],
      ),
    ).toBe('id,name,metric,step,value\r\njob_a,a,loss,1,0.5\r\n')
  })
})

describe('twenty runs', () => {
  it('are told apart by colour and dash', () => {
    const looks = Array.from({ length: 20 }, (_, index) => lookOf(index, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']))

    expect(new Set(looks.map((look) => `${look.color} ${look.dash}`)).size).toBe(20)
  })
})
