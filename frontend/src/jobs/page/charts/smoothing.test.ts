import { describe, expect, it } from 'vitest'

import { isLearningRate, matchKeys, parseAxis, parseSmoothing } from './smoothing'

describe('the settings of charts', () => {
  it('smooth by what was chosen last, and not at all where nothing was', () => {
    expect(['0', '0.25', '0.99'].map(parseSmoothing)).toEqual([0, 0.25, 0.99])
    expect([null, '', 'much', '1', '-1'].map(parseSmoothing)).toEqual([0, 0, 0, 0, 0])
  })
  it('know two axes', () => {
    expect([parseAxis('time'), parseAxis('wall'), parseAxis(null)]).toEqual(['time', 'step', 'step'])
  })
  it('tell a learning rate by its name', () => {
    expect(['train/lr', 'actor/lr', 'learning_rate', 'lr'].every(isLearningRate)).toBe(true)
    expect(['train/loss', 'lrx', 'color'].some(isLearningRate)).toBe(false)
  })
  it('find metrics by pattern, and by text where the pattern is no expression', () => {
    const keys = ['train/loss', 'val/loss', 'train/lr']
    expect(matchKeys(keys, '^train/')).toEqual(['train/loss', 'train/lr'])
    expect(matchKeys(keys, 'LOSS$')).toEqual(['train/loss', 'val/loss'])
    expect(matchKeys(['a(b', 'ab'], 'a(')).toEqual(['a(b'])
    expect(matchKeys(keys, ' ')).toEqual([])
  })
})
