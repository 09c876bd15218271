/** Rollouts by prompt. */
import type { Rollout, RolloutGroupRead } from '../../types'

export interface RolloutGroup {
  /** Of the group among those that are shown. */
  id: string
  step: number
  prompt: string
  /** The prompt as a conversation, where the run said so. */
  messages: readonly { role: string; content: string }[]
  /** Same for the same prompt at every step; null where the server does not know the group. */
  promptKey: string | null
  groundTruth: string | null
  /** Best score first. */
  rollouts: Rollout[]
  meanScore: number | null
  /** Responses of the group, shown or not. */
  count: number
  /** All responses scored the same: nothing is learned from such a group. */
  isUniform: boolean
}

/** Responses that are the same, letter by letter, with the same score. */
export interface Folded {
  first: Rollout
  count: number
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

function idOf(one: { step: number; group: string }): string {
  return `${one.step}/${one.group}`
}

/** `known` are the server's numbers of the groups: with a filter, only some of a group's responses are shown. */
export function groupRollouts(
  rollouts: readonly Rollout[],
  known: ReadonlyMap<string, RolloutGroupRead> = new Map(),
): RolloutGroup[] {
  const groups = new Map<string, Rollout[]>()
  for (const rollout of rollouts) {
    const members = groups.get(idOf(rollout))
    if (members === undefined) groups.set(idOf(rollout), [rollout])
    else members.push(rollout)
  }
  return [...groups].map(([id, members]) => {
    const found = scores(members)
    const whole = known.get(id)
    return {
      id,
      step: members[0]?.step ?? 0,
      prompt: members[0]?.prompt ?? '',
      messages: whole?.messages ?? [],
      promptKey: whole?.prompt_key ?? null,
      groundTruth: members.find((rollout) => rollout.ground_truth !== null)?.ground_truth ?? null,
      rollouts: [...members].sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity)),
      meanScore: whole === undefined ? mean(found) : whole.mean,
      count: whole?.count ?? members.length,
      isUniform:
        whole?.is_uniform ?? (members.length > 1 && found.length === members.length && new Set(found).size === 1),
    }
  })
}

/** The server's groups by the id that `groupRollouts` gives them. */
export function byId(groups: readonly RolloutGroupRead[]): Map<string, RolloutGroupRead> {
  return new Map(groups.map((group) => [idOf(group), group]))
}

/** Identical responses stand once, with their number. */
export function foldIdentical(rollouts: readonly Rollout[]): Folded[] {
  const found = new Map<string, Folded>()
  for (const rollout of rollouts) {
    const key = JSON.stringify([rollout.score, rollout.response])
    const known = found.get(key)
    if (known === undefined) found.set(key, { first: rollout, count: 1 })
    else known.count += 1
  }
  return [...found.values()]
}

/** Where a score lies between the lowest and the highest of its step, 0 to 1; 0.5 where they are the same. */
export function position(score: number, low: number, high: number): number {
  return high > low ? Math.min(1, Math.max(0, (score - low) / (high - low))) : 0.5
}
