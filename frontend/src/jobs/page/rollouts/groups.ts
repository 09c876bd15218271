/** Rollouts by prompt, the telling ones first. */
import type { Rollout } from '../../types'

export interface RolloutGroup {
  group: string
  prompt: string
  groundTruth: string | null
  /** Best score first. */
  rollouts: Rollout[]
  meanScore: number | null
  /** All responses scored the same: nothing is learned from such a group. */
  isUniform: boolean
}

export const ORDERS = ['sampled', 'worst', 'best', 'spread'] as const
export type Order = (typeof ORDERS)[number]

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
}

function scores(rollouts: readonly Rollout[]): number[] {
  return rollouts.flatMap((rollout) => (rollout.score === null ? [] : [rollout.score]))
}

export function groupRollouts(rollouts: readonly Rollout[]): RolloutGroup[] {
  const groups = new Map<string, Rollout[]>()
  for (const rollout of rollouts) {
    const known = groups.get(rollout.group)
    if (known === undefined) groups.set(rollout.group, [rollout])
    else known.push(rollout)
  }
  return [...groups].map(([group, members]) => {
    const found = scores(members)
    return {
      group,
      prompt: members[0]?.prompt ?? '',
      groundTruth: members.find((rollout) => rollout.ground_truth !== null)?.ground_truth ?? null,
      rollouts: [...members].sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity)),
      meanScore: mean(found),
      isUniform: members.length > 1 && found.length === members.length && new Set(found).size === 1,
    }
  })
}

function spread(group: RolloutGroup): number {
  const found = scores(group.rollouts)
  return found.length === 0 ? 0 : Math.max(...found) - Math.min(...found)
}

export function orderGroups(groups: readonly RolloutGroup[], order: Order): RolloutGroup[] {
  const sorted = [...groups]
  if (order === 'worst') sorted.sort((a, b) => (a.meanScore ?? Infinity) - (b.meanScore ?? Infinity))
  if (order === 'best') sorted.sort((a, b) => (b.meanScore ?? -Infinity) - (a.meanScore ?? -Infinity))
  if (order === 'spread') sorted.sort((a, b) => spread(b) - spread(a))
  return sorted
}

/** Where a score lies between the lowest and the highest of its step, 0 to 1; 0.5 where they are the same. */
export function position(score: number, low: number, high: number): number {
  return high > low ? Math.min(1, Math.max(0, (score - low) / (high - low))) : 0.5
}
