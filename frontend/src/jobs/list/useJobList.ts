/** The listed jobs for what the address asks, and changes of that address. */
import { computed, ref, shallowRef, watch } from 'vue'
import { type LocationQuery, useRoute, useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useCursorList } from '@/api/useCursorList'
import { useResource } from '@/api/useResource'

import { cutTo } from '../shared/cut'
import { isActive } from '../types'
import {
  type Column,
  isField,
  type JobSort,
  parseColumns,
  readColumns,
  serialise,
  shownIn,
  writeColumns,
} from './columns'
import type { JobFilters } from './filters'
import type { GroupSort } from './grouping'
import { type ListView, MOST_SELECTED, nextOrder, readView, writeView } from './view'

const ACTIVE_REFRESH_MS = 3_000
const IDLE_REFRESH_MS = 10_000
const PAGE_SIZE = 25

/** The query of the API for a view; a metric's order needs its name. */
export function toQuery({ filters, sort, isRising, grouping, metric }: ListView, columns: readonly Column[] = []) {
  const fields = columns.filter(isField)
  const { states, recipe, tag, group, text, hasAlarms, isStarred, kind, environment, workflow } = filters
  const isByMetric = sort === 'metric_last' || sort === 'metric_best'
  return {
    limit: PAGE_SIZE,
    state: states.length > 0 ? states : undefined,
    recipe: recipe ?? undefined,
    tag: tag ?? undefined,
    group: group ?? undefined,
    text: text === '' ? undefined : text,
    has_alarms: hasAlarms ? true : undefined,
    starred: isStarred ? true : undefined,
    kind: kind === 'all' ? undefined : kind,
    environment: environment ?? undefined,
    workflow: workflow ?? undefined,
    model: filters.model ?? undefined,
    dataset: filters.dataset ?? undefined,
    sweep: filters.sweep ?? undefined,
    group_by: grouping ?? undefined,
    metric: metric ?? undefined,
    fields: fields.length > 0 ? fields : undefined,
    // On a tab without the column an order by it could not be told.
    sort: (isByMetric && metric === null) || (isField(sort) && !columns.includes(sort)) ? ('created' as const) : sort,
    order: isRising ? ('asc' as const) : ('desc' as const),
  }
}

/** The key that most of the jobs show. */
export function commonest(keys: readonly string[]): string | null {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null
}

export function useJobList(hasPrice: () => boolean) {
  const route = useRoute()
  const router = useRouter()

  const view = computed(() => readView(route.query))
  const hasTrainings = computed(() => view.value.filters.kind === 'train' || view.value.filters.kind === 'all')
  const storedColumns = ref(readColumns())
  const chosenColumns = computed(() => view.value.columns ?? storedColumns.value)
  const columns = computed(() => shownIn(chosenColumns.value, hasTrainings.value, hasPrice()))
  /** Columns of this browser's choice, as the address would have them. */
  const kept = computed(() => {
    const stored = serialise(storedColumns.value)
    const query: LocationQuery = {}
    if (stored !== serialise(parseColumns(null))) query.columns = stored
    return query
  })
  /** Other parts of the address, and the selection, do not change what is listed; another field adds to its rows. */
  const queryKey = computed(() => JSON.stringify({ ...toQuery(view.value, columns.value), fields: undefined }))

  /** How many jobs a group has on all pages, as the page that was read last says; a refresh reads only the first page. */
  const groupCounts = shallowRef<ReadonlyMap<string, number>>(new Map())
  watch(queryKey, () => {
    groupCounts.value = new Map()
  })
  const list = useCursorList(
    async (cursor, signal) => {
      const query = { ...toQuery(view.value, columns.value), cursor }
      const asked = queryKey.value
      const page = await unwrap(api.GET('/api/v1/jobs', { params: { query }, signal }))
      const read = (page.groups ?? []).map(({ value, count }) => [value ?? '', count] as const)
      if (asked === queryKey.value) groupCounts.value = new Map([...groupCounts.value, ...read])
      return page
    },
    {
      watch: queryKey,
      intervalMs: (jobs) => (jobs.some((job) => isActive(job.state)) ? ACTIVE_REFRESH_MS : IDLE_REFRESH_MS),
    },
  )
  const jobs = computed(() => list.items.value)
  const isListed = (id: string | null) => jobs.value.some((job) => job.id === id)
  const fieldsKey = computed(() => columns.value.filter(isField).join('\n'))
  watch(fieldsKey, () => void list.reload())
  // A parameter that no recipe has any more: of another release, from a link or this browser's memory.
  watch(list.first.error, (error) => {
    if (error?.code !== 'unknown_field') return
    const left = columns.value.filter((column) => column !== `parameters.${String(error.details.parameter)}`)
    if (left.length < columns.value.length) chooseColumns(left)
  })

  function setView(part: Partial<ListView>): void {
    void router.replace({ query: writeView({ ...view.value, ...part }) })
  }

  function storeColumns(all: Column[]): void {
    storedColumns.value = all
    writeColumns(all)
  }

  /** What this tab does not show stays chosen for the others. */
  function chooseColumns(next: readonly Column[]): void {
    const hidden = chosenColumns.value.filter((column) => !columns.value.includes(column))
    const all = [...next, ...hidden]
    storeColumns(all)
    // An order by a column that is gone could not be told from the page.
    const { sort } = view.value
    setView({ columns: all, ...(isField(sort) && !all.includes(sort) ? { sort: 'created', isRising: false } : {}) })
  }

  /** A selection stays while the list is narrowed, and goes with its tab. */
  function setFilters(filters: JobFilters): void {
    setView(filters.kind === view.value.filters.kind ? { filters } : { filters, selected: [] })
  }

  const shownKeys = computed(() => jobs.value.flatMap((job) => (job.metric === null ? [] : [job.metric.key])))
  /** Every metric that was offered so far: a list that is sorted by one shows no other. */
  const metricKeys = ref<string[]>([])
  watch(
    jobs,
    (current) => {
      const found = new Set([
        ...metricKeys.value,
        ...shownKeys.value,
        ...current.flatMap((job) => job.headline_metrics),
      ])
      if (found.size !== metricKeys.value.length) metricKeys.value = [...found]
    },
    { immediate: true },
  )

  function sortBy(sort: JobSort): void {
    const isByMetric = sort === 'metric_last' || sort === 'metric_best'
    // Values of different metrics say nothing beside each other: the one that most rows show is sorted by.
    const metric = isByMetric ? (view.value.metric ?? commonest(shownKeys.value)) : view.value.metric
    if (isByMetric && metric === null) return
    const shown = isField(sort) ? jobs.value.map((job) => job.fields[sort]) : []
    setView({ ...nextOrder(view.value, sort, shown), metric })
  }

  /** Under headings, or not (null). */
  function groupBy(grouping: GroupSort | null): void {
    setView({ grouping })
  }

  /** From the list where it is in there; a job that is not is read for itself. */
  const fetched = useResource(
    async (signal) =>
      view.value.baseline === null
        ? null
        : unwrap(
            api.GET('/api/v1/jobs/{job_id}', {
              params: {
                path: { job_id: view.value.baseline },
                query: { metric: view.value.metric ?? undefined, fields: toQuery(view.value, columns.value).fields },
              },
              signal,
            }),
          ),
    {
      watch: () => [view.value.baseline, view.value.metric, fieldsKey.value].join(' '),
      intervalMs: (job) => {
        if (view.value.baseline === null || isListed(view.value.baseline)) return null
        return job !== null && isActive(job.state) ? ACTIVE_REFRESH_MS : IDLE_REFRESH_MS
      },
    },
  )
  /** The baseline where the list leaves it out; null where it was deleted. */
  const unlisted = computed(() => {
    const job = fetched.data.value
    if (job?.id !== view.value.baseline || isListed(view.value.baseline)) return null
    return fetched.error.value?.isNotFound === true ? null : job
  })
  const baseline = computed(() => jobs.value.find((job) => job.id === view.value.baseline) ?? unlisted.value)
  /** All rows that are shown: the listed jobs, and a baseline that is not among them. */
  const rows = computed(() => (unlisted.value === null ? jobs.value : [...jobs.value, unlisted.value]))

  async function reload(): Promise<void> {
    await Promise.all([list.reload(), ...(isListed(view.value.baseline) ? [] : [fetched.refresh()])])
  }

  const baselineError = computed(() =>
    view.value.baseline === null || baseline.value !== null ? null : fetched.error.value,
  )

  const selected = computed(() => new Set(view.value.selected))
  /** How many were to be chosen, where they were too many. */
  const selectionCut = ref<number | null>(null)

  function select(ids: readonly string[], isSelected: boolean): void {
    const next = isSelected
      ? [...new Set([...view.value.selected, ...ids])]
      : view.value.selected.filter((id) => !ids.includes(id))
    const { shown, total } = cutTo(next, MOST_SELECTED)
    selectionCut.value = total
    setView({ selected: shown })
  }

  /** Deleted jobs are no longer chosen, nor compared with. */
  function drop(ids: readonly string[]): void {
    const { selected: chosen, baseline: pinned } = view.value
    selectionCut.value = null
    setView({
      selected: chosen.filter((id) => !ids.includes(id)),
      baseline: pinned !== null && ids.includes(pinned) ? null : pinned,
    })
  }

  return {
    kept,
    hasTrainings,
    columns,
    chooseColumns,
    storeColumns,
    view,
    list,
    jobs,
    rows,
    reload,
    setView,
    setFilters,
    sortBy,
    groupBy,
    groupCounts,
    baseline,
    baselineError,
    metricKeys,
    selected,
    selectionCut,
    select,
    drop,
  }
}
