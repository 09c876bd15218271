/** Filters of the job list, as the address bar keeps them. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import { JOB_STATES, type JobState } from '../types'

/** The tabs of the list. */
export const KINDS = ['train', 'export', 'evaluate', 'all'] as const
export type KindTab = (typeof KINDS)[number]

export interface JobFilters {
  states: JobState[]
  recipe: string | null
  tag: string | null
  /** Related runs. */
  group: string | null
  text: string
  /** Only jobs with an active alarm. */
  hasAlarms: boolean
  isStarred: boolean
  kind: KindTab
  /** What their agents work in, and what trains as one: by id. */
  environment: string | null
  workflow: string | null
  /** By id, or by the name that was typed. */
  model: string | null
  dataset: string | null
  sweep: string | null
}

export const NO_FILTERS: JobFilters = {
  states: [],
  recipe: null,
  tag: null,
  group: null,
  text: '',
  hasAlarms: false,
  isStarred: false,
  kind: 'train',
  environment: null,
  workflow: null,
  model: null,
  dataset: null,
  sweep: null,
}

/** Their names in the address. */
export const FILTER_KEYS = [
  'state',
  'recipe',
  'tag',
  'group',
  'text',
  'alarms',
  'starred',
  'kind',
  'environment',
  'workflow',
  'model',
  'dataset',
  'sweep',
] as const

export function single(value: LocationQuery[string] | undefined): string | null {
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first === null || first === '' ? null : first
}

/** Reads the filters; what the list does not know is left out. */
export function readFilters(query: LocationQuery): JobFilters {
  const asked = [query.state].flat()
  return {
    states: JOB_STATES.filter((state) => asked.includes(state)),
    recipe: single(query.recipe),
    tag: single(query.tag),
    group: single(query.group),
    text: single(query.text) ?? '',
    hasAlarms: single(query.alarms) === '1',
    isStarred: single(query.starred) === '1',
    kind: KINDS.find((kind) => kind === single(query.kind)) ?? 'train',
    environment: single(query.environment),
    workflow: single(query.workflow),
    model: single(query.model),
    dataset: single(query.dataset),
    sweep: single(query.sweep),
  }
}

/** The shortest query that says the same: no empty filters. */
export function writeFilters(filters: JobFilters): LocationQueryRaw {
  const query: LocationQueryRaw = {}
  if (filters.states.length > 0) query.state = filters.states
  if (filters.recipe !== null) query.recipe = filters.recipe
  if (filters.tag !== null) query.tag = filters.tag
  if (filters.group !== null) query.group = filters.group
  if (filters.text !== '') query.text = filters.text
  if (filters.hasAlarms) query.alarms = '1'
  if (filters.isStarred) query.starred = '1'
  if (filters.kind !== 'train') query.kind = filters.kind
  if (filters.environment !== null) query.environment = filters.environment
  if (filters.workflow !== null) query.workflow = filters.workflow
  if (filters.model !== null) query.model = filters.model
  if (filters.dataset !== null) query.dataset = filters.dataset
  if (filters.sweep !== null) query.sweep = filters.sweep
  return query
}

/** Whether the list is narrowed within its tab. */
export function hasFilters(filters: JobFilters): boolean {
  return Object.keys(writeFilters({ ...filters, kind: 'train' })).length > 0
}
