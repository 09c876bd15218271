import { describe, expect, it } from 'vitest'

import { clockOf, meanOf, valueAt } from './curves'
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
  const curves = new Map([
    ['timing_s/step', { steps: [1, 2, 3], values: [2, 2, 2] }],
    ['perf/total_num_tokens', { steps: [1, 2, 3], values: [10, 20, 30] }],
  ])
  const job = { started_at: '2026-01-01T00:00:00Z', finished_at: '2026-01-01T00:01:00Z' }

  it('adds up the tokens and the seconds of the steps', () => {
    expect([1, 2, 3].map((step) => clockOf(job, curves, 'tokens', 0)?.(step))).toEqual([10, 30, 60])
    expect([1, 2, 3].map((step) => clockOf(job, curves, 'time', 0)?.(step))).toEqual([2, 4, 6])
    expect(clockOf(job, new Map([['train/num_tokens', { steps: [1, 3], values: [10, 30] }]]), 'tokens', 0)?.(2)).toBe(
      20,
    )
  })

  it('of the time of day ends with the run', () => {
    expect(clockOf(job, curves, 'wall', 0)?.(3)).toBe(Date.parse(job.finished_at))
    expect(clockOf(job, curves, 'wall', 0)?.(2)).toBe(Date.parse(job.finished_at) - 2000)
  })

  it('has no place for a run that did not report what it takes', () => {
    expect(clockOf(job, new Map(), 'time', 0)).toBeUndefined()
    expect(clockOf(job, new Map(), 'step', 0)).toBeNull()
  })
})

describe('the mean of runs', () => {
  it('goes as far as all have come, and between the points of each', () => {
    const mean = meanOf([
      { steps: [0, 2, 4], values: [0, 2, 4] },
      { steps: [1, 3], values: [3, 5] },
    ])

    expect(mean?.curve).toEqual({ steps: [1, 2, 3], values: [2, 3, 4] })
    expect(mean?.high[0]).toBeCloseTo(2 + Math.SQRT2)
  })

  it('leaves out what is no number, and is none for a single run', () => {
    expect(
      meanOf([
        { steps: [0, 1, 2], values: [0, NaN, 2] },
        { steps: [0, 2], values: [2, 4] },
      ])?.curve.values,
    ).toEqual([1, 3])
    expect(meanOf([{ steps: [0], values: [1] }])).toBeNull()
    expect(
      meanOf([
        { steps: [0], values: [1] },
        { steps: [5], values: [1] },
      ]),
    ).toBeNull()
  })

  it('does not leave its curve', () => {
    expect([valueAt({ steps: [2, 4], values: [1, 3] }, 0), valueAt({ steps: [2, 4], values: [1, 3] }, 9)]).toEqual([
      1, 3,
    ])
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
