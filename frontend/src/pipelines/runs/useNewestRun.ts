/** The newest run with a purpose on a version of a dataset, and how another one is started. */
import { computed, ref } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { useSubmission } from '@/composables/useSubmission'
import { isOver } from '@/datasets/tasks/useDataTask'

import type { PipelineStep, Purpose, Run } from '../types'
import { useRun } from './useRun'

interface Target {
  dataset: string
  /** Its whole id: runs are found by it. */
  version: string
}

export function useNewestRun(target: () => Target, purpose: Purpose) {
  const key = computed(() => JSON.stringify(target()))
  /** A run that was started from here; it may not be in the list yet. */
  const startedId = ref<string | null>(null)
  const newest = useResource(
    async (signal) => {
      const { dataset, version } = target()
      const page = await unwrap(api.GET('/api/v1/pipelines/runs', { params: { query: { dataset, version, purpose: [purpose], limit: 1 } }, signal }))
      return page.items[0]?.task.id ?? null
    },
    { watch: key, onReset: () => (startedId.value = null) },
  )
  const runId = computed(() => startedId.value ?? newest.data.value)
  const run = useRun(() => runId.value)
  const { error, isBusy, submit } = useSubmission()
  const isRunning = computed(() => run.data.value !== null && !isOver(run.data.value.task))

  /** Only a report is made of it. */
  async function start(name: string, steps: PipelineStep[], maxJudgeCost = 1): Promise<void> {
    await submit(async () => {
      const asked = key.value
      const { dataset, version } = target()
      const pipeline = { name, description: '', seed: 0, steps }
      const made: Run = await unwrap(api.POST('/api/v1/pipelines/runs', { body: { pipeline, dataset, version, output: { kind: 'none' }, purpose, executor: 'processes', max_judge_cost: maxJudgeCost } }))
      // Another version may be shown by now.
      if (key.value === asked) startedId.value = made.task.id
    })
  }

  return { newest, run, runId, isRunning, start, startError: error, isStarting: isBusy }
}
