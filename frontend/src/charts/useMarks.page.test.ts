import { describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import type { ChartLine, ChartMark, XAxis } from './lines'
import { useMarks } from './useMarks'

const line = (id: string, factor: number): ChartLine => ({
  id,
  label: id,
  curve: { steps: [1, 2], values: [1, 2] },
  clock: (step) => step * factor,
})
const mark = (more: Partial<ChartMark>): ChartMark => ({ step: 2, label: 'attempt 2', isCritical: false, ...more })

function placesOf(marks: ChartMark[], xAxis: XAxis): number[] {
  const { it: found, end } = withSetup(() =>
    useMarks(() => ({ marks, lines: [line('a', 10), line('b', 100)], xAxis }), String),
  )
  const places = found.placedMarks.value.map(({ x }) => x)
  end()
  return places
}

describe('marks of several lines', () => {
  it('stand on the clock of their own line, and of the first where they have none', () => {
    expect(placesOf([mark({}), mark({ line: 'b' })], 'time')).toEqual([20, 200])
    expect(placesOf([mark({ line: 'b' })], 'step')).toEqual([2])
  })

  it('are left out where their line is not in the chart', () => {
    expect(placesOf([mark({ line: 'hidden' })], 'step')).toEqual([])
  })
})
