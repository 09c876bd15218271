/** Asking the server for the best checkpoint: by any metric of the job, whose good end the server knows. */
import type { BestCheckpoint } from '../../types'

export const MODES = ['max', 'min'] as const satisfies readonly BestCheckpoint['mode'][]

export interface BestQuery {
  /** Null: the job's own metric. */
  metric: string | null
  /** Null: as suits the metric, which the server decides. */
  mode: BestCheckpoint['mode'] | null
}

/** The part of a request for checkpoints; what nobody chose is left out. */
export function bestParams({ metric, mode }: BestQuery): { best_by?: string; mode?: BestCheckpoint['mode'] } {
  return { ...(metric === null ? {} : { best_by: metric }), ...(metric === null || mode === null ? {} : { mode }) }
}

/** Every metric that can tell the best: those of the checkpoints first, then all others that the job has reported. */
export function bestKeys(ofCheckpoints: readonly string[], reported: Iterable<string>): string[] {
  return [...new Set([...ofCheckpoints, ...[...reported].sort()])]
}
