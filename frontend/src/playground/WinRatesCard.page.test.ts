import { createMemoryHistory, createRouter } from 'vue-router'
import { nextTick, reactive } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { pending } from '@/testing/pending'
import { mount } from '@/testing/withSetup'

import WinRatesCard from './WinRatesCard.vue'

const RATE = {
  model_a: 'oak',
  model_b: 'acorn',
  votes: 4,
  wins_a: 3,
  wins_b: 1,
  ties: 0,
  win_rate: 0.75,
  low: 0.3,
  high: 0.95,
}
let next: (path: string) => unknown = () => null

beforeEach(() => {
  answering('GET', ({ path }) => next(path))
})
afterEach(() => {
  vi.restoreAllMocks()
})

describe('the rates of models', () => {
  it('name checkpoints by their jobs', async () => {
    next = (path) =>
      path.endsWith('/win-rates')
        ? answer(200, { items: [{ ...RATE, model_b: 'job_aaaaaaaaaaaa:100' }] })
        : answer(200, { id: 'job_aaaaaaaaaaaa', name: 'sums' })
    const { root, end } = mount(WinRatesCard, { version: 0 }, (app) =>
      app.use(createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })),
    )
    await vi.waitFor(() => {
      expect(root.querySelector('tbody td')?.textContent).toBe('oak vs sums @ 100')
    })
    end()
  })

  it('stay while those with a new vote are read', async () => {
    next = () => answer(200, { items: [RATE] })
    const props = reactive({ version: 0 })
    const router = createRouter({
      history: createMemoryHistory(),
      routes: [{ path: '/', component: { template: '' } }],
    })
    const { root, end } = mount(WinRatesCard, props, (app) => app.use(router))
    await vi.waitFor(() => {
      expect(root.querySelectorAll('[data-test=rate]')).toHaveLength(1)
    })

    const second = pending()
    next = () => second.answer
    props.version = 1
    await nextTick()
    await nextTick()
    expect(root.querySelectorAll('[data-test=rate]')).toHaveLength(1)

    second.give(answer(200, { items: [RATE, { ...RATE, model_b: 'elm' }] }))
    await vi.waitFor(() => {
      expect(root.querySelectorAll('[data-test=rate]')).toHaveLength(2)
    })
    end()
  })
})
