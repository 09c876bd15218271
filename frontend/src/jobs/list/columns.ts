/** The columns of the job list: its own, and parameters and metrics that were chosen; by what each sorts. */
import type { components } from '@/api/schema'
import { readText, writeChoice } from '@/composables/storedChoice'

/** A parameter or a metric as a column, under the name that the API has for it. */
export type FieldColumn = `parameters.${string}` | `metrics.${string}`
export type JobSort = components['schemas']['JobSort'] | FieldColumn

export const SORTS = [
  'created',
  'name',
  'recipe',
  'model',
  'dataset',
  'state',
  'duration',
  'progress',
  'cost',
  'starred',
  'tags',
  'sweep',
  'group',
  'metric_last',
  'metric_best',
] as const satisfies readonly JobSort[]

/** Besides the star and the name, which are always there. */
export const COLUMNS = [
  'state',
  'recipe',
  'model',
  'dataset',
  'sweep',
  'group',
  'progress',
  'metricLast',
  'metricBest',
  'curve',
  'duration',
  'cost',
  'tags',
  'created',
] as const
export type OwnColumn = (typeof COLUMNS)[number]
export type Column = OwnColumn | FieldColumn

const SORT_OF: Readonly<Record<OwnColumn, JobSort | null>> = {
  state: 'state',
  recipe: 'recipe',
  model: 'model',
  dataset: 'dataset',
  sweep: 'sweep',
  group: 'group',
  progress: 'progress',
  metricLast: 'metric_last',
  metricBest: 'metric_best',
  curve: null,
  duration: 'duration',
  cost: 'cost',
  tags: 'tags',
  created: 'created',
}

const DEFAULT: readonly Column[] = [
  'state',
  'recipe',
  'model',
  'progress',
  'metricLast',
  'metricBest',
  'duration',
  'created',
]
/** What only a training has. */
const OF_TRAININGS: ReadonlySet<Column> = new Set<Column>(['dataset', 'sweep', 'metricLast', 'metricBest', 'curve'])
const KEY = 'trellis.jobs.columns'
/** As many as the API reads at once. */
export const MOST_FIELDS = 16
const FIELD = /^(?:parameters\.[a-z][a-z0-9_]*|metrics\.(?:last|best|at\.[0-9]{1,15})\..{1,256})$/s

export type MetricEnd = 'last' | 'best' | 'at'
/** What a column of a field shows. */
export type Field = { parameter: string } | { key: string; end: MetricEnd; step: number | null }

export function isField(column: string): column is FieldColumn {
  return FIELD.test(column)
}

export function isMetricField(column: string): column is `metrics.${string}` {
  return isField(column) && column.startsWith('metrics.')
}

export function readField(column: FieldColumn): Field {
  const found = /^metrics\.(?:(last|best)|at\.([0-9]+))\.(.+)$/s.exec(column)
  if (found === null) return { parameter: column.slice('parameters.'.length) }
  const step = found[2] === undefined ? null : Number(found[2])
  return { key: found[3] ?? '', end: step === null ? (found[1] as MetricEnd) : 'at', step }
}

export function metricField(key: string, end: MetricEnd, step: number): FieldColumn {
  return end === 'at' ? `metrics.at.${step}.${key}` : `metrics.${end}.${key}`
}

/** By what a column sorts; null: by nothing. */
export function sortOf(column: Column): JobSort | null {
  return isField(column) ? column : SORT_OF[column]
}

/** Own columns in their order, then the fields in the order in which they were chosen. */
export function arrange(columns: readonly string[]): Column[] {
  const fields = [...new Set(columns.filter(isField))].slice(0, MOST_FIELDS)
  return [...COLUMNS.filter((column) => columns.includes(column)), ...fields]
}

/** A cost needs a price. */
export function offered(hasTrainings: boolean, hasPrice: boolean): OwnColumn[] {
  return COLUMNS.filter((column) => (hasTrainings || !OF_TRAININGS.has(column)) && (hasPrice || column !== 'cost'))
}

/** Those that a tab shows of the chosen ones. */
export function shownIn(columns: readonly Column[], hasTrainings: boolean, hasPrice: boolean): Column[] {
  return columns.filter((column) => (isField(column) ? hasTrainings : offered(hasTrainings, hasPrice).includes(column)))
}

/** As they were chosen; names of columns that are no more are passed over. */
export function parseColumns(stored: string | null): Column[] {
  if (stored === null) return [...DEFAULT]
  return arrange(stored.split(',').map((name) => name.replaceAll('%2C', ',')))
}

/** A metric's name may hold the comma that parts them. */
export function serialise(columns: readonly Column[]): string {
  return columns.map((column) => column.replaceAll(',', '%2C')).join(',')
}

export function readColumns(): Column[] {
  return parseColumns(readText(KEY))
}

export function writeColumns(columns: readonly Column[]): void {
  writeChoice(KEY, serialise(columns))
}
