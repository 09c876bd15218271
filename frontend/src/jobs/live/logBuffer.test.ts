import { describe, expect, it } from 'vitest'

import type { LogLine } from '../types'
import { createLogBuffer, visibleText } from './logBuffer'

function lines(from: number, to: number): LogLine[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({
    line: from + index,
    attempt: 1,
    stream: 'stdout' as const,
    time: '2026-01-01T00:00:00Z',
    text: `line ${from + index}`,
  }))
}

function numbers(found: readonly LogLine[]): number[] {
  return found.map((line) => line.line)
}

describe('the lines of a job', () => {
  it('follow each other as they are streamed', () => {
    const buffer = createLogBuffer()

    buffer.add(lines(1, 2))
    buffer.add(lines(3, 3))

    expect(numbers(buffer.lines)).toEqual([1, 2, 3])
  })

  it('are kept once when a page overlaps the stream', () => {
    const buffer = createLogBuffer()
    buffer.add(lines(5, 6))

    buffer.add(lines(3, 6))

    expect(numbers(buffer.lines)).toEqual([3, 4, 5, 6])
    expect(buffer.add(lines(4, 5))).toBe(false)
  })

  it('give up the oldest when there are too many', () => {
    const buffer = createLogBuffer(10)

    buffer.add(lines(1, 15))

    expect(numbers(buffer.lines)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    expect(buffer.droppedCount).toBe(5)
  })

  it('take a hundred thousand lines in pages', () => {
    const buffer = createLogBuffer()

    for (let page = 0; page < 20; page++) buffer.add(lines(page * 5000 + 1, (page + 1) * 5000))

    expect(buffer.lines).toHaveLength(100_000)
  })
})

describe('the text of a line', () => {
  it('loses the colours meant for a terminal', () => {
    expect(visibleText('\u001b[36m(TaskRunner pid=12)\u001b[0m step:1')).toBe('(TaskRunner pid=12) step:1')
  })

  it('shows the last state of a progress bar', () => {
    expect(visibleText('  0%|   | 0/10\r 50%|█  | 5/10\r100%|██| 10/10\r')).toBe('100%|██| 10/10')
  })
})
