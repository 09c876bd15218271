/** What the job list shows, as the address bar keeps it: filters, order, metric and selection. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import { type Column, isField, type JobSort, parseColumns, serialise, SORTS } from './columns'
import { GROUPS, type GroupSort, isGroup } from './grouping'
import { FILTER_KEYS, type JobFilters, readFilters, single, writeFilters } from './filters'

export interface ListView {
  filters: JobFilters
  sort: JobSort
  isRising: boolean
  /** By what rows stand under headings; the order is that within each. */
  grouping: GroupSort | null
  /** The job that the others' metrics are compared with. */
  baseline: string | null
  /** The metric that is shown and sorted by; null: each job's headline. */
  metric: string | null
  /** Null: those that were chosen last in this browser. */
  columns: Column[] | null
  /** Ids of the chosen jobs. */
  selected: string[]
}

/** An address with more would not pass through every proxy. */
export const MOST_SELECTED = 50

export function readView(query: LocationQuery): ListView {
  const selected = (single(query.selected) ?? '').split(',').filter((id) => /^job_\w+$/.test(id))
  return {
    filters: readFilters(query),
    ...readOrder(query),
    baseline: /^job_\w+$/.test(single(query.baseline) ?? '') ? single(query.baseline) : null,
    metric: single(query.metric),
    columns: single(query.columns) === null ? null : parseColumns(single(query.columns)),
    selected: [...new Set(selected)].slice(0, MOST_SELECTED),
  }
}

/** Views that were saved when rows were grouped by what they were sorted by say only that they are. */
function readOrder(query: LocationQuery): Pick<ListView, 'sort' | 'isRising' | 'grouping'> {
  const sort = readSort(single(query.sort))
  if (single(query.grouped) === '1' && isGroup(sort)) return { sort: 'created', isRising: false, grouping: sort }
  const grouping = GROUPS.find((group) => group === single(query.group_by)) ?? null
  return { sort, isRising: single(query.order) === 'asc', grouping }
}

function readSort(asked: string | null): JobSort {
  if (asked !== null && isField(asked)) return asked
  return SORTS.find((sort) => sort === asked) ?? 'created'
}

export function writeView(view: ListView): LocationQueryRaw {
  const query = writeFilters(view.filters)
  if (view.sort !== 'created') query.sort = view.sort
  if (view.isRising) query.order = 'asc'
  if (view.grouping !== null) query.group_by = view.grouping
  if (view.baseline !== null) query.baseline = view.baseline
  if (view.metric !== null) query.metric = view.metric
  if (view.columns !== null) query.columns = serialise(view.columns)
  if (view.selected.length > 0) query.selected = view.selected.join(',')
  return query
}

/** What a saved view holds: everything but the selection. */
export const VIEW_KEYS = [
  ...FILTER_KEYS,
  'sort',
  'order',
  'grouped',
  'group_by',
  'baseline',
  'metric',
  'columns',
] as const

const RISING_FIRST: ReadonlySet<JobSort> = new Set<JobSort>([
  'name',
  'recipe',
  'model',
  'dataset',
  'state',
  'tags',
  'sweep',
  'group',
])

/**
 * A column that is chosen again turns round; words begin at A, figures and dates at the greatest.
 * `shown` are the values of a parameter or metric in the rows so far: they tell which of the two it is.
 */
export function nextOrder(
  view: Pick<ListView, 'sort' | 'isRising'>,
  sort: JobSort,
  shown: readonly unknown[] = [],
): Pick<ListView, 'sort' | 'isRising'> {
  return { sort, isRising: view.sort === sort ? !view.isRising : RISING_FIRST.has(sort) || areWords(shown) }
}

function areWords(values: readonly unknown[]): boolean {
  const known = values.filter((value) => value !== null && value !== undefined)
  return known.length > 0 && known.every((value) => typeof value === 'string')
}
