import { describe, expect, it } from 'vitest'

import { readScales, USUAL_SCALE, writeScales } from './yScale'

describe('the scales of charts in an address', () => {
  it('come back as they were, also of a metric with a comma in its name', () => {
    const scales = new Map([
      ['actor/loss', { isLog: true, low: '', high: '' }],
      ['a,b', { isLog: false, low: '-0.5', high: '1e3' }],
    ])

    expect(readScales(writeScales(scales))).toEqual(scales)
  })

  it('keep what is typed as it is, also where it is no number', () => {
    expect(
      readScales(writeScales(new Map([['loss', { isLog: false, low: '0,5', high: '-' }]]))).get('loss'),
    ).toMatchObject({ low: '0,5', high: '-' })
  })

  it('say nothing of charts that are drawn as usual', () => {
    expect(writeScales(new Map([['loss', USUAL_SCALE]]))).toEqual([])
  })

  it('leave out what cannot be read', () => {
    expect(readScales([null, '', 'log', 'log,1', 'lin,0,1,loss', 'log,0,1,'])).toEqual(new Map())
  })
})
