/** What the job list shows, as the address bar keeps it: filters, order, metric and selection. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import { type Column, isField, type JobSort, parseColumns, serialise, SORTS } from './columns'
import { isGroup } from './grouping'
import { FILTER_KEYS, type JobFilters, readFilters, single, writeFilters } from './filters'

export interface ListView {
  filters: JobFilters
  sort: JobSort
  isRising: boolean
  /** Whether rows stand under headings, one for each value of what the list is sorted by. */
  isGrouped: boolean
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
    sort: readSort(single(query.sort)),
    isRising: single(query.order) === 'asc',
    isGrouped: single(query.grouped) === '1',
    baseline: /^job_\w+$/.test(single(query.baseline) ?? '') ? single(query.baseline) : null,
    metric: single(query.metric),
    columns: single(query.columns) === null ? null : parseColumns(single(query.columns)),
    selected: [...new Set(selected)].slice(0, MOST_SELECTED),
  }
}

function readSort(asked: string | null): JobSort {
  if (asked !== null && isField(asked)) return asked
  return SORTS.find((sort) => sort === asked) ?? 'created'
}

export function writeView(view: ListView): LocationQueryRaw {
  const query = writeFilters(view.filters)
  if (view.sort !== 'created') query.sort = view.sort
  if (view.isRising) query.order = 'asc'
  if (view.isGrouped && isGroup(view.sort)) query.grouped = '1'
  if (view.baseline !== null) query.baseline = view.baseline
  if (view.metric !== null) query.metric = view.metric
  if (view.columns !== null) query.columns = serialise(view.columns)
  if (view.selected.length > 0) query.selected = view.selected.join(',')
  return query
}

/** What a saved view holds: everything but the selection. */
export const VIEW_KEYS = [...FILTER_KEYS, 'sort', 'order', 'grouped', 'baseline', 'metric', 'columns'] as const

const RISING_FIRST: ReadonlySet<JobSort> = new Set<JobSort>([
  'name',
  'recipe',
  'model',
  'dataset',
  'state',
  'tags',
  'sweep',
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
