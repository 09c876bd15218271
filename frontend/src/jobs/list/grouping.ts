/** Rows of the list under headings: one for each value of what they are grouped by. */
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
  /** What its jobs have in common, as the API names the group; of jobs without any, the empty text. */
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
      // Also of one that was deleted: its jobs stay apart from those of others.
      return job.model.id
    case 'dataset':
      return job.dataset?.id ?? ''
    case 'sweep':
      // Two sweeps may have the same name.
      return job.sweep?.id ?? ''
    case 'group':
      return job.group ?? ''
    case 'tags':
      // Of several the first, by bytes as in the API: a job stands in the list once.
      return [...job.tags].sort()[0] ?? ''
    case 'state':
      return job.state
  }
}
