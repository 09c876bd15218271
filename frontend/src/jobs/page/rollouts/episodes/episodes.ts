/** Which episodes of a step are shown, and what is said of one. */
import type { Rollout } from '../../../types'
import type { Episode, Trajectory, Turn } from './types'

export interface EpisodeFilter {
  stopReason: string | null
  /** Lowest and highest score, both included; an episode without a score is in no range. */
  from: number | null
  to: number | null
}

export const NO_FILTER: EpisodeFilter = { stopReason: null, from: null, to: null }

export function isEpisode(rollout: Rollout): rollout is Episode {
  return rollout.stop_reason !== null
}

/** The neighbour in a list; null at its end, the first where the episode is not in it. */
export function neighbour(episodes: readonly Episode[], id: number | null, step: 1 | -1): Episode | null {
  const here = episodes.findIndex((one) => one.id === id)
  return here < 0 ? (episodes[0] ?? null) : (episodes[here + step] ?? null)
}

export interface EpisodeSums {
  /** Answers of the model: what the limit of turns counts. */
  turns: number
  calls: number
  failedCalls: number
  tokens: number
  trainedTokens: number
}

export function sumsOf({ turns }: Pick<Trajectory, 'turns'>): EpisodeSums {
  const calls = turns.flatMap((turn) => turn.calls ?? [])
  const tokens = (of: readonly Turn[]) => of.reduce((sum, turn) => sum + turn.tokens, 0)
  return {
    turns: turns.filter((turn) => turn.role === 'assistant').length,
    calls: calls.length,
    failedCalls: calls.filter((call) => call.error != null).length,
    tokens: tokens(turns),
    trainedTokens: tokens(turns.filter((turn) => turn.is_trained)),
  }
}

/** Whether a tool's turn says only what the calls before it were answered with: then it is folded. */
export function isToldByCalls(turns: readonly Turn[], index: number): boolean {
  const turn = turns[index]
  if (turn?.role !== 'tool') return false
  const before = turns.slice(0, index).findLast((one) => one.role === 'assistant')
  const text = turn.text.trim()
  return (before?.calls ?? []).some(
    (call) => typeof call.result === 'string' && call.result.trim() !== '' && text.includes(call.result.trim()),
  )
}

export interface RewardBar {
  name: string
  value: number
  /** Share of the half of the axis, 0 to 1; null where a bar would say nothing: counts beside rewards. */
  share: number | null
}

/** Rewards of an episode lie within this; what is larger is a count and would flatten the others. */
const WIDEST_REWARD = 3

/** Parts of a reward on one axis, in the order in which they were reported. */
export function rewardBars(parts: Readonly<Record<string, number | null>>): RewardBar[] {
  const known = Object.entries(parts).flatMap(([name, value]) => (value === null ? [] : [{ name, value }]))
  const widest = Math.max(0, ...known.map(({ value }) => Math.abs(value)).filter((size) => size <= WIDEST_REWARD))
  return known.map(({ name, value }) => ({
    name,
    value,
    share: widest === 0 || Math.abs(value) > WIDEST_REWARD ? null : Math.abs(value) / widest,
  }))
}
