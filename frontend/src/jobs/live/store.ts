/** The run that is being watched. It outlives the page for a moment, so that coming back shows it at once. */
import { defineStore } from 'pinia'
import { shallowRef } from 'vue'

import { createLiveRun, type LiveRun } from './liveRun'

const LINGER_MS = 30_000

export const useLiveRunStore = defineStore('live-run', () => {
  const run = shallowRef<LiveRun | null>(null)
  let timer: ReturnType<typeof setTimeout> | undefined

  /** The live run of a job; another job's run is closed, because browsers allow few open streams. */
  function watchJob(jobId: string): LiveRun {
    clearTimeout(timer)
    if (run.value?.jobId === jobId) {
      void run.value.readJob()
      return run.value
    }
    run.value?.close()
    run.value = createLiveRun(jobId)
    return run.value
  }

  function leave(jobId: string): void {
    if (run.value?.jobId !== jobId) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      run.value?.close()
      run.value = null
    }, LINGER_MS)
  }

  /** At once, for a job that is deleted or a session that ends. */
  function drop(): void {
    clearTimeout(timer)
    run.value?.close()
    run.value = null
  }

  return { watchJob, leave, drop }
})
