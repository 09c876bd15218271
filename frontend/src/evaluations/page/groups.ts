/** Scores of groups, sorted for reading. */
import type { GroupScore } from '../types'

/** Kinds in the order in which the run gives them. */
export function kindsOf(groups: readonly GroupScore[]): string[] {
  return [...new Set(groups.map((group) => group.kind))]
}

/** Levels by number, everything else by score, the best first: that is what one looks for. */
export function sortGroups(groups: readonly GroupScore[], kind: string): GroupScore[] {
  const own = groups.filter((group) => group.kind === kind)
  const isNumbered = own.every((group) => /^\D*\d+$/.test(group.name))
  const numberOf = (group: GroupScore) => Number(/\d+$/.exec(group.name)?.[0] ?? 0)
  return own.sort((a, b) =>
    isNumbered ? numberOf(a) - numberOf(b) : b.score.value - a.score.value || a.name.localeCompare(b.name),
  )
}
