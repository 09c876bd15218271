/** What checkpoints are called that were never served: `sums @ 100` says more than the ID of a job. */
import { computed, type ComputedRef, reactive, watch } from 'vue'

import { api, unwrap } from '@/api/client'

import { CHECKPOINT, type Choice, labelOf } from './useEndpoints'

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

  async function readName(jobId: string): Promise<void> {
    names.set(jobId, null)
    try {
      const job = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: jobId } } }))
      names.set(jobId, job.name)
    } catch {
      // Its ID is shown; what is wrong is said when the checkpoint is asked.
    }
  }

  watch(
    unknown,
    (all) => {
      for (const { jobId } of all) if (!names.has(jobId)) void readName(jobId)
    },
    { immediate: true },
  )
  return computed(() =>
    unknown.value.map(({ value, jobId, step }) => ({ value, label: labelOf(value, names.get(jobId), step) })),
  )
}
