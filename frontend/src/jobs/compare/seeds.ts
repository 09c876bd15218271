/** Groups of runs that differ only in the seed: how they are told apart, and which seeds are still to be run. */
import type { components } from '@/api/schema'
import type { ParameterRow } from '@/charts/axes'
import type { LineLook } from '@/charts/lines'
import { formatParameter } from '@/format/parameter'

import type { Job } from '../types'
import type { Comparison } from './tables'

export type ComparedSeeds = components['schemas']['ComparedSeeds']
export type SeedGroup = ComparedSeeds['groups'][number]
export type GroupDifference = ComparedSeeds['differences'][number]

/** Seeds that an interval over seeds should have. */
export const WANTED_SEEDS = 3
const MOST_SEED = 2 ** 31 - 1

/** A run whose clone in the launch form is a sweep over the seeds that a group lacks. */
export function moreSeedsOf(
  group: SeedGroup,
  jobs: readonly Job[],
): { clone: string; sweep: '1'; seeds: string } | null {
  const own = jobs.filter((job) => group.job_ids.includes(job.id))
  const [first] = own
  if (first === undefined || !first.can_clone || group.seed_count >= WANTED_SEEDS) return null
  const taken = new Set(own.map((job) => job.seed))
  const free = Array.from({ length: taken.size + WANTED_SEEDS }, (_, index) => (first.seed + index) % MOST_SEED).filter(
    (seed) => !taken.has(seed),
  )
  // A sweep of seeds alone has two of them at least.
  return { clone: first.id, sweep: '1', seeds: free.slice(0, Math.max(2, WANTED_SEEDS - group.seed_count)).join(', ') }
}

/** What sets a group apart from the others, such as `learning_rate 1e-6`; empty where nothing but the seed differs. */
export function settingsOf(group: SeedGroup, found: Comparison): string[] {
  return found.parameters.flatMap((row) => {
    if (row.group === 'run' && row.name === 'seed') return []
    const value = group.job_ids.map((id) => row.values[id]).find((each) => each != null)
    return value == null ? [] : [`${row.name} ${formatParameter(value)}`]
  })
}

/** Runs with a value as rows of the parameter charts, with what differs between them. */
export function rowsOf(
  found: Comparison,
  values: Readonly<Record<string, number>>,
  looks: ReadonlyMap<string, LineLook>,
): ParameterRow[] {
  return found.jobs.flatMap((job, id) => {
    const value = values[job.id]
    if (value === undefined) return []
    const own = found.parameters.flatMap((row) =>
      row.values[job.id] == null ? [] : [[row.name, row.values[job.id]] as const],
    )
    return [
      {
        id,
        label: job.name,
        values: Object.fromEntries(own),
        value,
        color: looks.get(job.id)?.color,
        isPartial: job.state !== 'succeeded',
      },
    ]
  })
}
