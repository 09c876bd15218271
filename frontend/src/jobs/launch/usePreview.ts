/** What the API says a request would run, a moment after the last change. */
import { api, unwrap } from '@/api/client'
import { useDebouncedQuery } from '@/api/useDebouncedQuery'

import type { JobCreate, JobPreview } from '../types'

/** `request` gives null while too little is chosen to ask for anything. */
export function usePreview(request: () => JobCreate | null) {
  return useDebouncedQuery<JobCreate, JobPreview>(request, (body, signal) =>
    unwrap(api.POST('/api/v1/jobs/preview', { body, signal })),
  )
}
