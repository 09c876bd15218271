/** Names for the parts of an episode. */
import type { Rollout } from '../../../types'

export type Trajectory = NonNullable<Rollout['trajectory']>
export type Turn = Trajectory['turns'][number]
export type ToolCall = NonNullable<Turn['calls']>[number]

/** An episode among the samples of a step. */
export interface Episode {
  /** Position in the step's sample: the address names the episode by it. */
  at: number
  rollout: Rollout
  trajectory: Trajectory
}
