/** A job's manifest, as the run wrote it down itself; before that there is none. */
import { type Ref, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { ApiError } from '@/api/errors'
import { useResource } from '@/api/useResource'

import type { LiveRun } from '../live/liveRun'

/** Without an attempt: the latest one's. */
export function useManifest(run: LiveRun, attempt?: Ref<number>) {
  const manifest = useResource(
    async (signal) => {
      try {
        const params = { path: { job_id: run.jobId }, query: { attempt: attempt?.value } }
        return { found: await unwrap(api.GET('/api/v1/jobs/{job_id}/manifest', { params, signal })) }
      } catch (cause) {
        if (cause instanceof ApiError && cause.isNotFound) return { found: null }
        throw cause
      }
    },
    { watch: attempt },
  )
  watch(run.manifestVersion, () => void manifest.refresh())
  return manifest
}
