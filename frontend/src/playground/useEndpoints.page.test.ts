import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import type { Endpoint } from './types'
import { distinct, useEndpoints } from './useEndpoints'

afterEach(() => {
  vi.restoreAllMocks()
})

it('checkpoints of jobs with one name are told apart, and only those', () => {
  const labels = ['job_aaaaaaaaaaaa:1', 'job_bbbbbbbbbbbb:1', 'job_cccccccccccc:2'].map((value) => ({
    value,
    label: `sums @ ${value.slice(-1)}`,
  }))

  expect(distinct([...labels, { value: 'base', label: 'base' }]).map(({ label }) => label)).toEqual([
    'sums @ 1 (job_aaaaaaaaaaaa)',
    'sums @ 1 (job_bbbbbbbbbbbb)',
    'sums @ 2',
    'base',
  ])
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
