/** Rows that are left after each step, as bars. */
import type { RunReport } from '../types'

export interface FunnelBar {
  /** Null: the input. */
  step: string | null
  rows: number
  /** Rows fewer (or more) than before the step. */
  delta: number
  /** Of the largest bar. */
  width: number
  /** Of the largest bar: where the bar before ended. */
  previous: number
}

export function funnelBars(funnel: RunReport['funnel']): FunnelBar[] {
  const most = Math.max(1, ...funnel.map((bar) => bar.rows))
  return funnel.map((bar, index) => {
    const before = funnel[index - 1]?.rows ?? bar.rows
    return { step: bar.step, rows: bar.rows, delta: bar.rows - before, width: bar.rows / most, previous: before / most }
  })
}
