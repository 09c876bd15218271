/** The draft of the page: filled in by the link that led here, changed by its cards. */
import { computed, reactive } from 'vue'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useDebouncedQuery } from '@/api/useDebouncedQuery'
import { useResource } from '@/api/useResource'
import { addressOf, hasAllOf, keptDrafts } from '@/composables/keptDrafts'
import { useKeptDraft } from '@/composables/useKeptDraft'

import type { EvaluationCreate } from '../types'
import { type BenchmarkName, type EvaluationDraft, newDraft, newOrder, toRequest } from './draft'
import { readPrefill } from './prefill'

function isDraft(found: unknown): found is EvaluationDraft {
  return (
    hasAllOf(newDraft(), found) &&
    hasAllOf(newDraft().engine, (found as EvaluationDraft).engine) &&
    (found as EvaluationDraft).orders.every((order) => hasAllOf(newOrder(order.benchmark, 0), order))
  )
}

const keptEvaluations = keptDrafts('evaluation', (found) => (isDraft(found) ? found : null))

export function useEvaluationDraft() {
  const route = useRoute()
  const address = addressOf(route.query)
  const kept = keptEvaluations.read(address)
  const prefill = readPrefill(route.query)
  const names = new Map<string, string>()
  let nextKey = 1 + Math.max(0, ...(kept?.orders ?? []).map((order) => order.key))

  const draft = reactive<EvaluationDraft>(kept ?? newDraft())
  /** Fields that hold something unreadable; the request says nothing of them. */
  const unreadable = reactive(new Set<string>())
  if (kept === null) fill()

  /** What the link that led here asks for. */
  function fill(): void {
    draft.models = [...prefill.models]
    draft.checkpoints = prefill.checkpoints.map((one) => ({ ...one, name: names.get(one.job) ?? one.name }))
    for (const benchmark of prefill.benchmarks) addOrder(benchmark)
  }

  function addOrder(benchmark: BenchmarkName): void {
    draft.orders.push(newOrder(benchmark, nextKey))
    nextKey += 1
  }

  function removeOrder(key: number): void {
    draft.orders = draft.orders.filter((order) => order.key !== key)
  }

  function setProblem(field: string, has: boolean): void {
    if (has) unreadable.add(field)
    else unreadable.delete(field)
  }

  // A checkpoint that came by a link is shown under its job's name.
  const jobs = useResource(async (signal) => {
    for (const job_id of new Set(prefill.checkpoints.map((one) => one.job))) {
      const job = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id } }, signal }))
      names.set(job.id, job.name)
      draft.checkpoints = draft.checkpoints.map((one) => (one.job === job.id ? { ...one, name: job.name } : one))
    }
    return true
  })

  const keeping = useKeptDraft<EvaluationDraft>({
    drafts: keptEvaluations,
    address,
    kept,
    state: () => draft,
    isSettled: computed(() => jobs.data.value !== null || jobs.error.value !== null),
  })

  /** The form as the link opens it. */
  function startOver(): void {
    Object.assign(draft, newDraft())
    fill()
    keeping.startOver()
  }

  const request = computed<EvaluationCreate | null>(() => (unreadable.size > 0 ? null : toRequest(draft)))
  const estimate = useDebouncedQuery(
    () => {
      if (request.value === null) return null
      const { targets, benchmarks, engine, seed } = request.value
      return { targets, benchmarks, engine, seed }
    },
    (body, signal) => unwrap(api.POST('/api/v1/evaluations/estimate', { body, signal })),
  )

  const { isRestored, forget } = keeping
  return { draft, isRestored, startOver, forget, request, estimate, addOrder, removeOrder, setProblem }
}
