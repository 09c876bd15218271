import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import type { Endpoint } from './types'
import { useEndpoints } from './useEndpoints'

afterEach(() => {
  vi.restoreAllMocks()
})

describe('the endpoints of the platform', () => {
  it('are kept from trainings without being started', async () => {
    const changes: unknown[] = []
    answering('GET', () => answer(200, { items: [], next_cursor: null }))
    answering('PATCH', ({ path, parts, body }) => {
      changes.push({ path, parts, body })
      return answer(200, {})
    })
    const { it: endpoints, end } = withSetup(
      () => useEndpoints(),
      (app) => app.use(createPinia()),
    )

    await endpoints.setPreemptible({ id: 'ep_1', name: 'tiny' } as unknown as Endpoint, false)

    expect(changes).toEqual([
      { path: '/api/v1/endpoints/{endpoint_id}', parts: { endpoint_id: 'ep_1' }, body: { preemptible: false } },
    ])
    end()
  })
})
