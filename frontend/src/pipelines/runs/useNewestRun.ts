/** The newest run with a purpose on a version of a dataset, the newest report, and how another run is started. */
import { computed, ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { useSubmission } from '@/composables/useSubmission'
import { isOver } from '@/datasets'

import type { DataTask, PipelineStep, Purpose, Run } from '../types'
import { useRun } from './useRun'

/** Among these a report is looked for. */
const LIMIT = 50

interface Target {
  dataset: string
  /** Its whole id: runs are found by it. */
  version: string
}

function hasReport(run: Run): boolean {
  return run.task.state === 'succeeded'
}

export function useNewestRun(target: () => Target, purpose: Purpose) {
  const key = computed(() => JSON.stringify(target()))
  /** A run that was started from here; it may not be in the list yet. */
  const startedId = ref<string | null>(null)
  /** The newest run with a report: it stays while another one works, and when that fails. */
  const reported = shallowRef<Run | null>(null)
  const history = useResource(
    async (signal) => {
      const { dataset, version } = target()
      return (
        await unwrap(
          api.GET('/api/v1/pipelines/runs', {
            params: { query: { dataset, version, purpose: [purpose], limit: LIMIT } },
            signal,
          }),
        )
      ).items
    },
    {
      watch: key,
      onReset: () => {
        startedId.value = null
        reported.value = null
      },
    },
  )
  const newestId = computed(() => startedId.value ?? history.data.value?.[0]?.task.id ?? null)
  const run = useRun(() => newestId.value)
  const earlierId = computed(() => {
    if (run.data.value === null || hasReport(run.data.value) || reported.value !== null) return null
    return history.data.value?.find((one) => hasReport(one))?.task.id ?? null
  })
  const earlier = useRun(() => earlierId.value)
  const resources = [history, run, earlier] as const

  watch([run.data, earlier.data], ([newest, before]) => {
    const good = newest !== null && hasReport(newest) ? newest : before
    if (good !== null) reported.value = good
  })

  const { error, isBusy, submit } = useSubmission()

  /** Only a report is made of it. */
  async function start(name: string, steps: PipelineStep[], maxJudgeCost = 1): Promise<void> {
    await submit(async () => {
      const asked = key.value
      const { dataset, version } = target()
      const pipeline = { name, description: '', seed: 0, steps }
      const made: Run = await unwrap(
        api.POST('/api/v1/pipelines/runs', {
          body: {
            pipeline,
            dataset,
            version,
            output: { kind: 'none' },
            purpose,
            executor: 'processes',
            max_judge_cost: maxJudgeCost,
          },
        }),
      )
      // Another version may be shown by now.
      if (key.value === asked) startedId.value = made.task.id
    })
  }

  /** The newest run's task as it is after something was done to it. */
  function takeTask(task: DataTask): void {
    if (run.data.value !== null) run.data.value = { ...run.data.value, task }
  }

  /** What kept something from being read; what was read once stays. */
  const loadError = computed(
    () => resources.find((one) => one.error.value !== null && one.data.value === null)?.error.value ?? null,
  )

  async function reload(): Promise<void> {
    await Promise.all(resources.filter((one) => one.error.value !== null).map((one) => one.refresh()))
  }

  return {
    run: run.data,
    reported,
    isRunning: computed(() => run.data.value !== null && !isOver(run.data.value.task)),
    /** It is known that there is none. */
    isEmpty: computed(() => history.data.value !== null && newestId.value === null),
    loadError,
    reload,
    takeTask,
    start,
    startError: error,
    isStarting: isBusy,
  }
}
