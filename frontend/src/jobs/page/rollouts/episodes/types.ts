/** Names for the parts of an episode. */
import type { Rollout } from '../../../types'

export type Trajectory = NonNullable<Rollout['trajectory']>
export type Turn = Trajectory['turns'][number]
export type ToolCall = NonNullable<Turn['calls']>[number]

/** A response that is an agent's episode, as lists have it: without its turns. */
export type Episode = Rollout & { stop_reason: string }
