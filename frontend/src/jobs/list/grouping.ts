/** Rows of the list under headings: one for each value of what the list is sorted by. */
import type { Job } from '../types'
import type { JobSort } from './columns'

export const GROUPS = ['recipe', 'model', 'dataset', 'tags', 'state'] as const satisfies readonly JobSort[]
export type GroupSort = (typeof GROUPS)[number]

export interface JobGroup {
  /** What its jobs have in common; of jobs without any, the empty text. */
  value: string
  jobs: Job[]
}

export function isGroup(sort: JobSort): sort is GroupSort {
  return (GROUPS as readonly string[]).includes(sort)
}

/** Jobs that follow each other with the same value: the list is sorted by it, so none comes twice. */
export function groupJobs(jobs: readonly Job[], by: GroupSort): JobGroup[] {
  const groups: JobGroup[] = []
  for (const job of jobs) {
    const value = valueOf(job, by)
    const last = groups.at(-1)
    if (last !== undefined && last.value === value) last.jobs.push(job)
    else groups.push({ value, jobs: [job] })
  }
  return groups
}

function valueOf(job: Job, by: GroupSort): string {
  switch (by) {
    case 'recipe':
      return job.recipe
    case 'model':
      return job.model.name ?? ''
    case 'dataset':
      return job.dataset?.name ?? ''
    case 'tags':
      return [...job.tags].join(', ')
    case 'state':
      return job.state
  }
}
