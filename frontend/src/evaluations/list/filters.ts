/** Filters of the list of evaluations, as the address bar keeps them. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import { JOB_STATES, type JobState } from '@/jobs'

export interface EvaluationFilters {
  states: JobState[]
  benchmark: string | null
  model: string | null
  /** Only checkpoints of this job. */
  job: string | null
}

export const NO_FILTERS: EvaluationFilters = { states: [], benchmark: null, model: null, job: null }

function single(value: LocationQuery[string] | undefined): string | null {
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first === null || first === '' ? null : first
}

/** Reads the filters; what the list does not know is left out. */
export function readFilters(query: LocationQuery): EvaluationFilters {
  const asked = [query.state].flat()
  return {
    states: JOB_STATES.filter((state) => asked.includes(state)),
    benchmark: single(query.benchmark),
    model: single(query.model),
    job: single(query.job),
  }
}

/** The shortest query that says the same: no empty filters. */
export function writeFilters(filters: EvaluationFilters): LocationQueryRaw {
  const query: LocationQueryRaw = {}
  if (filters.states.length > 0) query.state = filters.states
  if (filters.benchmark !== null) query.benchmark = filters.benchmark
  if (filters.model !== null) query.model = filters.model
  if (filters.job !== null) query.job = filters.job
  return query
}

export function hasFilters(filters: EvaluationFilters): boolean {
  return Object.keys(writeFilters(filters)).length > 0
}
