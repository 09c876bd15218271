import { describe, expect, it } from 'vitest'

import { isLearningRate, matchKeys, MAX_PATTERN, parseAxis, parseSmoothing } from './smoothing'

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
  it('find metrics by text with wildcards and anchors', () => {
    const keys = ['train/loss', 'val/loss', 'train/lr']
    expect(matchKeys(keys, '^train/')).toEqual(['train/loss', 'train/lr'])
    expect(matchKeys(keys, 'LOSS$')).toEqual(['train/loss', 'val/loss'])
    expect(matchKeys(['a(b', 'ab'], 'a(')).toEqual(['a(b'])
    expect(matchKeys(keys, ' ')).toEqual([])
    expect(matchKeys(keys, '^*/loss$')).toEqual(['train/loss', 'val/loss'])
    expect(matchKeys(keys, 'tr*l*r')).toEqual(['train/lr'])
    expect(matchKeys(keys, '^loss')).toEqual([])
    expect(matchKeys(['a/b/a/b', 'ab'], '^a*b$')).toEqual(['a/b/a/b', 'ab'])
    expect(matchKeys(['aba'], 'ab*ba$')).toEqual([])
  })
  it('take no time over a pattern that a regular expression would take for ever for', () => {
    const key = 'a'.repeat(40)
    const startedAt = performance.now()
    expect(matchKeys([key], '^(a+)+b$')).toEqual([])
    expect(matchKeys([key], 'a'.repeat(MAX_PATTERN + 1))).toEqual([])
    expect(performance.now() - startedAt).toBeLessThan(100)
  })
})
