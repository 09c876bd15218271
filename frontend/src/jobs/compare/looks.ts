/** How the runs of a comparison are drawn: colours first, then the same colours in dashes. */
import type { LineLook } from '@/charts/lines'

const DASHES = ['solid', 'dashed', 'dotted'] as const

export function lookOf(index: number, colors: readonly string[]): LineLook {
  return {
    color: colors[index % colors.length] ?? 'gray',
    dash: DASHES[Math.floor(index / colors.length) % DASHES.length] ?? 'solid',
  }
}
