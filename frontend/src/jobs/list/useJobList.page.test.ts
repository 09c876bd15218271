import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { useJobList } from './useJobList'

const LISTED = { id: 'job_a', name: 'listed', state: 'succeeded', metric: null, headline_metrics: [], fields: {} }
let pinned: { status: number; body: unknown }
let reads: string[]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  reads = []
  pinned = { status: 200, body: { ...LISTED, id: 'job_b', name: 'pinned', state: 'running' } }
  answering('GET', ({ parts, query }) => {
    if (parts.job_id !== undefined) {
      reads.push(parts.job_id)
      return answer(pinned.status, pinned.body)
    }
    const isFirst = query.cursor === undefined
    const groups = isFirst ? [{ value: 'sft', count: 80 }] : [{ value: 'dpo', count: 9 }]
    const items = [isFirst ? LISTED : { ...LISTED, id: 'job_c' }]
    return answer(200, { items, groups, next_cursor: isFirst ? 'more' : null })
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

async function open(query: string) {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  await router.push(`/${query}`)
  const shown = withSetup(
    () => useJobList(() => false),
    (app) => app.use(router),
  )
  await vi.advanceTimersByTimeAsync(0)
  return { ...shown, router }
}

it('knows how many jobs the groups of later pages have, also after a refresh of the first', async () => {
  const { it: list, end } = await open('?group_by=recipe')
  await list.list.loadMore()
  await list.list.first.refresh()
  expect([...list.groupCounts.value]).toEqual([
    ['sft', 80],
    ['dpo', 9],
  ])

  list.groupBy('model')
  await vi.advanceTimersByTimeAsync(0)
  expect([...list.groupCounts.value]).toEqual([['sft', 80]])
  end()
})

it('keeps a baseline fresh that the list leaves out, and shows it among the rows', async () => {
  const { it: list, end } = await open('?baseline=job_b')
  expect(list.rows.value.map(({ id }) => id)).toEqual(['job_a', 'job_b'])
  pinned.body = { ...(pinned.body as object), name: 'renamed' }
  await list.reload()
  expect(list.baseline.value?.name).toBe('renamed')

  pinned.body = { ...(pinned.body as object), state: 'succeeded' }
  await vi.advanceTimersByTimeAsync(3_000)
  expect(list.baseline.value?.state).toBe('succeeded')
  pinned = { status: 404, body: { error: 'job_not_found', message: 'none', details: null } }
  await vi.advanceTimersByTimeAsync(10_000)
  expect(list.baseline.value).toBeNull()
  expect(list.baselineError.value?.isNotFound).toBe(true)
  end()
})

it('asks no more for a baseline that is in the list', async () => {
  const { end } = await open('?baseline=job_a')
  const before = reads.length
  await vi.advanceTimersByTimeAsync(60_000)
  expect(reads.length).toBe(before)
  end()
})

it('drops deleted jobs from the choice and as the baseline', async () => {
  const { it: list, router, end } = await open('?baseline=job_b&selected=job_a,job_b')
  list.drop(['job_b'])
  await vi.advanceTimersByTimeAsync(0)

  expect(list.view.value.baseline).toBeNull()
  expect([...list.selected.value]).toEqual(['job_a'])
  expect(router.currentRoute.value.query.baseline).toBeUndefined()
  end()
})
