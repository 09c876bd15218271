/** The draft of the page: filled in by the link that led here, changed by its cards. */
import { computed, reactive } from 'vue'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useDebouncedQuery } from '@/api/useDebouncedQuery'
import { useResource } from '@/api/useResource'

import type { EvaluationCreate } from '../types'
import { type BenchmarkName, type EvaluationDraft, newDraft, newOrder, toRequest } from './draft'
import { readPrefill } from './prefill'

export function useEvaluationDraft() {
  const route = useRoute()
  const prefill = readPrefill(route.query)
  let nextKey = 1

  const draft = reactive<EvaluationDraft>({ ...newDraft(), models: prefill.models, checkpoints: prefill.checkpoints })
  /** Fields that hold something unreadable; the request says nothing of them. */
  const unreadable = reactive(new Set<string>())
  for (const benchmark of prefill.benchmarks) addOrder(benchmark)

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
  useResource(async (signal) => {
    for (const job_id of new Set(prefill.checkpoints.map((one) => one.job))) {
      const job = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id } }, signal }))
      draft.checkpoints = draft.checkpoints.map((one) => (one.job === job.id ? { ...one, name: job.name } : one))
    }
    return true
  })

  const request = computed<EvaluationCreate | null>(() => (unreadable.size > 0 ? null : toRequest(draft)))
  const estimate = useDebouncedQuery(
    () => {
      if (request.value === null) return null
      const { targets, benchmarks, engine, seed } = request.value
      return { targets, benchmarks, engine, seed }
    },
    (body, signal) => unwrap(api.POST('/api/v1/evaluations/estimate', { body, signal })),
  )

  return { draft, request, estimate, addOrder, removeOrder, setProblem }
}
