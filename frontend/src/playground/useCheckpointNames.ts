/** What checkpoints are called that were never served: `sums @ 100` says more than the ID of a job. */
import { computed, type ComputedRef, onScopeDispose, reactive, watch } from 'vue'

import { api, unwrap } from '@/api/client'

import { CHECKPOINT, type Choice, labelOf } from './useEndpoints'

/** A browser opens few connections to one host, and the page has more to read than names. */
const PARALLEL = 3

/** `models` are those of the columns, `known` those that have a label. */
export function useCheckpointNames(
  models: () => readonly string[],
  known: () => readonly Choice[],
): ComputedRef<Choice[]> {
  /** By the job's ID; null as long as a name is not read, or where the job is gone. */
  const names = reactive(new Map<string, string | null>())
  const unknown = computed(() =>
    [...new Set(models())].flatMap((value) => {
      const [, jobId, step] = CHECKPOINT.exec(value) ?? []
      const isKnown = known().some((choice) => choice.value === value)
      return jobId === undefined || step === undefined || isKnown ? [] : [{ value, jobId, step: Number(step) }]
    }),
  )

  const waiting: string[] = []
  let runningCount = 0
  const abort = new AbortController()
  onScopeDispose(() => {
    abort.abort()
  })

  async function readName(jobId: string): Promise<void> {
    try {
      const { signal } = abort
      const job = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: jobId } }, signal }))
      names.set(jobId, job.name)
    } catch {
      // Its ID is shown; what is wrong is said when the checkpoint is asked.
    }
  }

  function next(): void {
    while (runningCount < PARALLEL && !abort.signal.aborted) {
      const jobId = waiting.shift()
      if (jobId === undefined) return
      runningCount += 1
      void readName(jobId).finally(() => {
        runningCount -= 1
        next()
      })
    }
  }

  watch(
    unknown,
    (all) => {
      for (const { jobId } of all) {
        if (names.has(jobId)) continue
        names.set(jobId, null)
        waiting.push(jobId)
      }
      next()
    },
    { immediate: true },
  )
  return computed(() =>
    unknown.value.map(({ value, jobId, step }) => ({ value, label: labelOf(value, names.get(jobId), step) })),
  )
}
