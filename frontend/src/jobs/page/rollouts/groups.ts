/** Rollouts by prompt. */
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

/** The server orders prompts, for it knows those of all pages. */
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

/** Where a score lies between the lowest and the highest of its step, 0 to 1; 0.5 where they are the same. */
export function position(score: number, low: number, high: number): number {
  return high > low ? Math.min(1, Math.max(0, (score - low) / (high - low))) : 0.5
}
