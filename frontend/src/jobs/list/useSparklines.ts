/** The metric of each job in a list that its row shows, else its headline metric: read a few at a time and only as often as it can have changed. */
import { onScopeDispose, shallowReactive, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { ApiError } from '@/api/errors'

import { toCurve } from '../live/curveBook'
import { type Job, isActive } from '../types'

export interface Spark {
  key: string
  values: number[]
}

/** A browser opens few connections to one host, and the page has more to read than curves. */
const PARALLEL = 2
const POINTS = 48
const RUNNING_REFRESH_MS = 15_000

export function useSparklines(jobs: () => readonly Job[]) {
  const sparks = shallowReactive(new Map<string, Spark>())
  /** What a job's curve was read for; a change makes it worth reading again. */
  const readFor = new Map<string, string>()
  let waiting: { job: Job; stamp: string }[] = []
  let runningCount = 0
  const abort = new AbortController()
  onScopeDispose(() => {
    abort.abort()
  })

  /** Changes when the curve can have: every step of a finished job, now and then while it runs. */
  function stampOf(job: Job): string {
    const progress = isActive(job.state) ? Math.floor(Date.now() / RUNNING_REFRESH_MS) : job.progress.step
    return `${job.state}:${job.attempt}:${progress}:${job.metric?.key ?? ''}`
  }

  async function read(job: Job): Promise<void> {
    // Which of the headline metrics a run reports depends on its data: the first that is there is shown.
    const shown = job.metric == null ? [] : [job.metric.key]
    const keys = [...new Set([...shown, ...job.headline_metrics.slice(0, 3)])]
    const answer = await unwrap(
      api.GET('/api/v1/jobs/{job_id}/metrics', {
        params: { path: { job_id: job.id }, query: { keys, max_points: POINTS } },
        signal: abort.signal,
      }),
    )
    const found = keys
      .map((key) => answer.series.find((series) => series.key === key))
      .find((series) => series !== undefined && series.steps.length > 0)
    if (found !== undefined) sparks.set(job.id, { key: found.key, values: toCurve(found).values })
  }

  function next(): void {
    while (runningCount < PARALLEL) {
      const first = waiting.shift()
      if (first === undefined) return
      const { job, stamp } = first
      // Noted now and not when it was put in line: a newer list replaces the line, and who was not read yet waits again.
      readFor.set(job.id, stamp)
      runningCount += 1
      void read(job)
        .catch((cause: unknown) => {
          // A list without a curve is still a list; the next refresh tries again.
          readFor.delete(job.id)
          if (!(cause instanceof ApiError) && !abort.signal.aborted) throw cause
        })
        .finally(() => {
          runningCount -= 1
          if (!abort.signal.aborted) next()
        })
    }
  }

  watch(
    jobs,
    (current) => {
      waiting = current
        .filter(
          (job) =>
            (job.metric != null || job.headline_metrics.length > 0) &&
            job.state !== 'queued' &&
            job.state !== 'launching',
        )
        .map((job) => ({ job, stamp: stampOf(job) }))
        .filter(({ job, stamp }) => readFor.get(job.id) !== stamp)
      next()
    },
    { immediate: true },
  )

  return sparks
}
