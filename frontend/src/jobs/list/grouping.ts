/** Rows of the list under headings: one for each value of what the list is sorted by. */
import type { Job } from '../types'
import type { JobSort } from './columns'

export const GROUPS = [
  'recipe',
  'model',
  'dataset',
  'sweep',
  'group',
  'tags',
  'state',
] as const satisfies readonly JobSort[]
export type GroupSort = (typeof GROUPS)[number]

export interface JobGroup {
  /** What its jobs have in common; of jobs without any, the empty text. */
  value: string
  jobs: Job[]
}

export function isGroup(sort: JobSort): sort is GroupSort {
  return (GROUPS as readonly string[]).includes(sort)
}

/** In the order in which the values come first; pages that were loaded at different times may repeat one. */
export function groupJobs(jobs: readonly Job[], by: GroupSort): JobGroup[] {
  const groups = new Map<string, JobGroup>()
  for (const job of jobs) {
    const value = valueOf(job, by)
    const group = groups.get(value)
    if (group === undefined) groups.set(value, { value, jobs: [job] })
    else group.jobs.push(job)
  }
  return [...groups.values()]
}

function valueOf(job: Job, by: GroupSort): string {
  switch (by) {
    case 'recipe':
      return job.recipe
    case 'model':
      return job.model.name ?? ''
    case 'dataset':
      return job.dataset?.name ?? ''
    case 'sweep':
      // Two sweeps may have the same name.
      return job.sweep?.id ?? ''
    case 'group':
      return job.group ?? ''
    case 'tags':
      return [...job.tags].sort().join(', ')
    case 'state':
      return job.state
  }
}
