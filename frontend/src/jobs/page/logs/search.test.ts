import { describe, expect, it } from 'vitest'

import type { LogLine } from '../../types'
import { filterLines, findMatches, isError, LOG_STREAMS, segments } from './search'

function line(number: number, text: string, stream: LogLine['stream'] = 'stdout'): LogLine {
  return { line: number, attempt: 1, stream, time: '2026-01-01T00:00:00Z', text }
}

const lines = [line(1, 'Loading'), line(2, 'ERROR: boom', 'stderr'), line(3, 'loaded')]
const all = new Set(LOG_STREAMS)

describe('filtering log lines', () => {
  it('does nothing without a wish', () => {
    expect(filterLines(lines, { needle: '', streams: all, onlyMatches: true })).toBe(lines)
  })

  it('leaves the chosen streams', () => {
    expect(
      filterLines(lines, { needle: '', streams: new Set(['stderr']), onlyMatches: false }).map((one) => one.line),
    ).toEqual([2])
  })

  it('ignores case when only matches are wanted', () => {
    expect(filterLines(lines, { needle: 'load', streams: all, onlyMatches: true }).map((one) => one.line)).toEqual([
      1, 3,
    ])
  })

  it('is quick over a hundred thousand lines', () => {
    const many = Array.from({ length: 100_000 }, (_, index) => line(index, `line number ${index} of a long run`))
    const before = performance.now()

    expect(findMatches(many, 'number 99999')).toEqual([99_999])
    expect(performance.now() - before).toBeLessThan(500)
  })
})

describe('marking matches', () => {
  it('cuts the text at every match', () => {
    expect(segments('a Step and a step', 'step')).toEqual([
      { text: 'a ', isMatch: false },
      { text: 'Step', isMatch: true },
      { text: ' and a ', isMatch: false },
      { text: 'step', isMatch: true },
    ])
  })

  it('leaves a text without a match whole', () => {
    expect(segments('nothing', 'x')).toEqual([{ text: 'nothing', isMatch: false }])
  })
})

describe('lines that tell of something wrong', () => {
  it.each([
    ['Traceback (most recent call last):', true],
    ['torch.OutOfMemoryError: CUDA out of memory', true],
    ['ValueError: bad', true],
    ['step:1 - actor/entropy:0.2', false],
    ['UserWarning: lr_scheduler', false],
    ['terror of the deep', false],
    ['step:5 - val-aux/dataset/error/mean@1:0.0 - actor/lr:1e-05', false],
    ["{'val/error/rate': 0.5}", false],
    ['step:5 - loss/x:1.0 RuntimeError: boom', true],
  ])('%s', (text, expected) => {
    expect(isError(text)).toBe(expected)
  })
})
