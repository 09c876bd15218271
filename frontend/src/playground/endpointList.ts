/** The endpoints of the platform as a list. */
import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'

import type { Endpoint } from './types'

const PAGE_SIZE = 200

/** All that were ever served, newest first. */
export function readEndpoints(signal: AbortSignal): Promise<Endpoint[]> {
  return readAllPages((cursor) =>
    unwrap(api.GET('/api/v1/endpoints', { params: { query: { limit: PAGE_SIZE, cursor } }, signal })),
  )
}

/** Whether it holds memory, or is about to. */
export function isUp({ state }: Endpoint): boolean {
  return state === 'starting' || state === 'ready' || state === 'stopping'
}

/** One with an engine of its own can be kept from the trainings and endpoints that wait for its place. */
export function canKeep({ shares_engine_of: base, state }: Endpoint): boolean {
  return base == null && (state === 'starting' || state === 'ready')
}
