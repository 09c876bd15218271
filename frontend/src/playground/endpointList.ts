/** The endpoints of the platform as a list. */
import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'

import type { Endpoint } from './types'

const PAGE_SIZE = 200

function read(signal: AbortSignal, isUpOnly?: true): Promise<Endpoint[]> {
  return readAllPages((cursor) =>
    unwrap(api.GET('/api/v1/endpoints', { params: { query: { limit: PAGE_SIZE, cursor, is_up: isUpOnly } }, signal })),
  )
}

/** Those that hold memory, or are about to, newest first. */
export function readLoaded(signal: AbortSignal): Promise<Endpoint[]> {
  return read(signal, true)
}

/** Reads all that were ever served, newest first; again only what is loaded, as long as that goes on. */
export function followEndpoints(): (signal: AbortSignal) => Promise<Endpoint[]> {
  let known: Endpoint[] | null = null
  return async (signal) => {
    if (known !== null) {
      const loaded = new Map((await readLoaded(signal)).map((endpoint) => [endpoint.id, endpoint]))
      const old = new Set(known.map(({ id }) => id))
      if (!known.some((endpoint) => isUp(endpoint) && !loaded.has(endpoint.id))) {
        const added = [...loaded.values()].filter(({ id }) => !old.has(id))
        known = [...added, ...known.map((endpoint) => loaded.get(endpoint.id) ?? endpoint)]
        return known
      }
    }
    // One that is no longer loaded says why not.
    known = await read(signal)
    return known
  }
}

/** Whether it holds memory, or is about to. */
export function isUp({ state }: Endpoint): boolean {
  return state === 'starting' || state === 'ready' || state === 'stopping'
}

/** One with an engine of its own can be kept from the trainings and endpoints that wait for its place. */
export function canKeep({ shares_engine_of: base, state }: Endpoint): boolean {
  return base == null && (state === 'starting' || state === 'ready')
}
