import { afterEach, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'

import { followEndpoints } from './endpointList'

afterEach(() => vi.restoreAllMocks())

const { signal } = new AbortController()

it('reads all endpoints once, and again only when one is no longer loaded', async () => {
  let all = [
    { id: 'ep_2', state: 'ready' },
    { id: 'ep_1', state: 'stopped' },
  ]
  const asked: unknown[] = []
  answering('GET', ({ query }) => {
    asked.push(query.is_up)
    const items = query.is_up === true ? all.filter(({ state }) => state !== 'stopped' && state !== 'failed') : all
    return answer(200, { items, next_cursor: null })
  })
  const read = followEndpoints()
  expect(await read(signal)).toEqual(all)

  all = [{ id: 'ep_3', state: 'starting' }, ...all]
  expect(await read(signal)).toEqual(all)
  expect(asked).toEqual([undefined, true])

  all = [{ id: 'ep_3', state: 'failed' }, ...all.slice(1)]
  expect(await read(signal)).toEqual(all)
  expect(asked).toEqual([undefined, true, true, undefined])
})
