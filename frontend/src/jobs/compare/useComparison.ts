/** What the server says of the compared jobs, read as the address asks for it. */
import { computed, shallowRef, watch } from 'vue'
import { useRoute, useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

import { defaultKeys } from '../shared/metricCatalogue'
import { cutTo } from '../shared/cut'
import { isActive } from '../types'
import { readCurves, type RunCurves } from './readCurves'
import type { ComparedSeeds } from './seeds'
import { type CompareView, readView, writeView } from './view'

const REFRESH_MS = 10_000
/** Metrics that are charted unasked, and as many as one request takes. */
const USUAL = 6
const MOST_KEYS = 20

export function useComparison() {
  const route = useRoute()
  const router = useRouter()
  const view = computed(() => readView(route.query))
  const ids = computed(() => view.value.ids.join(','))

  function setView(part: Partial<CompareView>): void {
    void router.replace({ query: writeView({ ...view.value, ...part }) })
  }

  const tables = useResource(
    async (signal) => {
      if (ids.value === '') return null
      return unwrap(api.GET('/api/v1/jobs/compare', { params: { query: { ids: [ids.value] } }, signal }))
    },
    {
      watch: ids,
      intervalMs: (found) => (found?.jobs.some((job) => isActive(job.state)) === true ? REFRESH_MS : null),
    },
  )
  const found = computed(() => tables.data.value)
  const jobs = computed(() => found.value?.jobs ?? [])
  const baseline = computed(() => view.value.baseline ?? jobs.value[0]?.id ?? null)

  /** The usual charts of metrics that at least two runs have, then what the reader added. */
  const usual = computed(() => {
    const shared = (found.value?.metric_keys ?? [])
      .filter((one) => one.run_count >= Math.min(2, jobs.value.length))
      .map((one) => one.key)
    const headline = [...new Set(jobs.value.flatMap((job) => job.headline_metrics))].filter((key) =>
      shared.includes(key),
    )
    return defaultKeys(headline, shared).slice(0, USUAL)
  })
  const charted = computed(() => cutTo([...new Set([...usual.value, ...view.value.keys])], MOST_KEYS))
  const keys = computed(() => charted.value.shown)
  const hasKeys = computed(() => keys.value.length > 0)

  const curves = useResource(
    async (signal) => {
      // Nothing to draw is an answer, too: the page says so.
      if (ids.value === '' || keys.value.length === 0) return new Map<string, RunCurves>()
      return readCurves(ids.value.split(','), keys.value, { signal })
    },
    { watch: [ids, hasKeys], intervalMs: () => (jobs.value.some((job) => isActive(job.state)) ? REFRESH_MS : null) },
  )
  // Charts that are there stay while another one is read.
  watch([ids, hasKeys, () => keys.value.join('\n')], ([jobIds, has], [oldIds, had]) => {
    if (jobIds === oldIds && has === had) void curves.refresh()
  })

  const ranked = computed(() => JSON.stringify([ids.value, baseline.value, view.value.metric, view.value.take]))
  const seeds = useResource(
    async (signal) => {
      if (ids.value === '' || baseline.value === null) return null
      const query = {
        ids: [ids.value],
        baseline: baseline.value,
        metric: view.value.metric ?? undefined,
        take: view.value.take ?? undefined,
      }
      return unwrap(api.GET('/api/v1/jobs/compare/seeds', { params: { query }, signal }))
    },
    { watch: ranked, intervalMs: () => (jobs.value.some((job) => isActive(job.state)) ? REFRESH_MS : null) },
  )
  /** Stays in place while another metric is read. */
  const shownSeeds = shallowRef<ComparedSeeds | null>(null)
  watch(seeds.data, (answer) => {
    if (answer !== null) shownSeeds.value = answer
  })

  return { view, setView, tables, found, jobs, baseline, usual, keys, charted, curves, seeds, shownSeeds }
}
