import { NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'

import type { Resource } from '@/api/useResource'
import { useResource } from '@/api/useResource'
import { mount } from '@/testing/withSetup'

import EndpointsCard from './EndpointsCard.vue'
import type { Endpoint } from './types'

const NOW = '2026-01-01T00:10:00Z'
const LOAD = { running: 2, waiting: 1, generated_tokens_per_s: 41.5, first_token_mean_s: 0.31 }
const READY = {
  id: 'ep_1',
  name: 'base',
  kind: 'model',
  model: { id: 'mdl_a', name: 'base' },
  job: null,
  step: null,
  state: 'ready',
  phase: null,
  state_since: '2026-01-01T00:09:30Z',
  shares_engine_of: null,
  stops_at: '2026-01-01T00:11:30Z',
  preemptible: true,
  can_stop: true,
  load: LOAD,
}
const LORA = {
  ...READY,
  id: 'ep_2',
  name: 'job_a:100',
  kind: 'checkpoint',
  job: { id: 'job_a', name: 'sums' },
  step: 100,
  shares_engine_of: READY.model,
  stops_at: null,
  load: null,
}
const STARTING = { ...READY, id: 'ep_3', name: 'big', state: 'starting', phase: 'loading', stops_at: null, load: null }
const STOPPED = { ...READY, id: 'ep_4', name: 'old', state: 'stopped', can_stop: false }

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now: Date.parse(NOW) })
})
afterEach(() => {
  vi.useRealTimers()
})

async function show(endpoints: object[]) {
  const told: unknown[] = []
  const router = createRouter({
    history: createMemoryHistory(),
    routes: ['model', 'job', 'playground'].map((name) => ({
      path: `/${name}/:id?`,
      name,
      component: { render: () => null },
    })),
  })
  await router.push('/playground')
  const card = {
    setup() {
      const resource: Resource<Endpoint[]> = useResource(() => Promise.resolve(endpoints as unknown as Endpoint[]))
      return () =>
        h(EndpointsCard, {
          resource,
          stop: ({ id }: Endpoint) => Promise.resolve(void told.push(['stop', id])),
          setPreemptible: ({ id }: Endpoint, is: boolean) => Promise.resolve(void told.push(['preemptible', id, is])),
        })
    },
  }
  const mounted = mount({ setup: () => () => h(NMessageProvider, () => h(card)) }, {}, (app) =>
    app.use(createPinia()).use(router),
  )
  await nextTick()
  await nextTick()
  const rows = () =>
    [...mounted.root.querySelectorAll('[data-test=loaded]')].map((row) =>
      [...row.querySelectorAll('td')].map(({ textContent }) => textContent.replace(/\s+/g, ' ').trim()),
    )
  return { ...mounted, rows, told }
}

describe('the list of what is loaded', () => {
  it('tells the load of each engine, and counts down to its end', async () => {
    const { root, rows, end } = await show([READY, LORA, STARTING, STOPPED])

    expect(rows().map((cells) => cells.slice(0, -1))).toEqual([
      ['base', 'Ready', '41.5', '2 running, 1 waiting', '0.31 s', '1 min 30 s'],
      ['sums @ 100In the engine of base', 'Ready', '—', '—', '—', '—'],
      ['big', 'StartingLoading model, 30 s.', '—', '—', '—', '—'],
    ])
    expect([...root.querySelectorAll('td a')].map((link) => link.getAttribute('href'))).toEqual([
      '/model/mdl_a',
      '/job/job_a?tab=checkpoints',
      '/model/mdl_a',
    ])
    vi.advanceTimersByTime(60_000)
    await nextTick()
    expect(root.querySelector('[data-test=idle]')?.textContent).toBe('30 s')
    end()
  })

  it('keeps and stops each of them; what shares an engine is kept with that', async () => {
    const { root, told, end } = await show([READY, LORA, { ...STARTING, preemptible: false }])
    const all = (name: string) => [...root.querySelectorAll<HTMLElement>(`[data-test=${name}]`)]
    expect(all('keep').map((box) => box.getAttribute('aria-checked'))).toEqual(['false', 'true'])

    all('keep')[0]?.click()
    await nextTick()
    await nextTick()
    all('stop')[1]?.click()
    await nextTick()

    expect(told).toEqual([
      ['preemptible', 'ep_1', false],
      ['stop', 'ep_2'],
    ])
    expect(all('stop').map((button) => button.getAttribute('aria-label'))).toEqual([
      'Stop base',
      'Stop sums @ 100',
      'Stop big',
    ])
    end()
  })

  it('says that nothing is loaded', async () => {
    const { root, rows, end } = await show([STOPPED])
    expect([rows(), root.querySelector('[data-test=endpoints] p')?.textContent]).toEqual([
      [],
      'No model is loaded. The first prompt loads one.',
    ])
    end()
  })
})
