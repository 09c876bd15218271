/** The columns of the job list: by what each sorts, and which are shown. */
import type { components } from '@/api/schema'
import { readText, writeChoice } from '@/composables/storedChoice'

export type JobSort = components['schemas']['JobSort']

export const SORTS = ['created', 'name', 'recipe', 'model', 'dataset', 'state', 'duration', 'progress', 'starred', 'tags', 'metric_last', 'metric_best'] as const satisfies readonly JobSort[]

/** Besides the star and the name, which are always there. */
export const COLUMNS = ['state', 'recipe', 'model', 'dataset', 'progress', 'metricLast', 'metricBest', 'curve', 'duration', 'tags', 'created'] as const
export type Column = (typeof COLUMNS)[number]

export const SORT_OF: Readonly<Record<Column, JobSort | null>> = {
  state: 'state', recipe: 'recipe', model: 'model', dataset: 'dataset', progress: 'progress', metricLast: 'metric_last', metricBest: 'metric_best', curve: null, duration: 'duration', tags: 'tags', created: 'created',
}

const DEFAULT: readonly Column[] = ['state', 'recipe', 'model', 'progress', 'metricLast', 'metricBest', 'duration', 'created']
/** What only a training has. */
const OF_TRAININGS: ReadonlySet<Column> = new Set<Column>(['dataset', 'metricLast', 'metricBest', 'curve'])
const KEY = 'trellis.jobs.columns'

export function offered(hasTrainings: boolean): Column[] {
  return COLUMNS.filter((column) => hasTrainings || !OF_TRAININGS.has(column))
}

/** As they were chosen, in their own order; names of columns that are no more are passed over. */
export function parseColumns(stored: string | null): Column[] {
  if (stored === null) return [...DEFAULT]
  const names = stored.split(',')
  return COLUMNS.filter((column) => names.includes(column))
}

export function serialise(columns: readonly Column[]): string {
  return columns.join(',')
}

export function readColumns(): Column[] {
  return parseColumns(readText(KEY))
}

export function writeColumns(columns: readonly Column[]): void {
  writeChoice(KEY, serialise(columns))
}
