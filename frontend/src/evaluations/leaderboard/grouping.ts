/** The board's scores, those together that were measured alike. */
import type { components } from '@/api/schema'

export type Leaderboard = components['schemas']['LeaderboardRead']
export type RankedScore = components['schemas']['RankedScore']

export interface ComparableScores {
  configuration: string
  /** Each with its place among these; scores that are equal share one. */
  rows: { place: number; item: RankedScore }[]
}

/** Groups in the order of their best rank; within one, the order of the board. */
export function groupComparable(items: readonly RankedScore[]): ComparableScores[] {
  const groups = new Map<string, RankedScore[]>()
  for (const item of [...items].sort((a, b) => a.rank - b.rank)) {
    const known = groups.get(item.configuration)
    if (known === undefined) groups.set(item.configuration, [item])
    else known.push(item)
  }
  return [...groups].map(([configuration, members]) => ({ configuration, rows: placed(members) }))
}

function placed(members: readonly RankedScore[]): ComparableScores['rows'] {
  let place = 0
  return members.map((item, index) => {
    if (index === 0 || members[index - 1]?.score.value !== item.score.value) place = index + 1
    return { place, item }
  })
}

/** Length of a full bar: 1 for shares, the largest value for everything else. */
export function fullLength(items: readonly RankedScore[], isShare: boolean): number {
  const values = items.flatMap(({ score }) => [score.value, score.high ?? score.value])
  return isShare && values.every((value) => value >= 0 && value <= 1) ? 1 : Math.max(0, ...values)
}
