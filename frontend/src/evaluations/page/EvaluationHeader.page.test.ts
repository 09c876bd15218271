import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import type { Evaluation } from '../types'
import EvaluationHeader from './EvaluationHeader.vue'

const EVALUATION = {
  id: 'ev_aaaaaaaaaaaa',
  name: 'tiny on GSM8K',
  state: 'succeeded',
  trigger: 'user',
  seed: 1,
  attempt: 1,
  benchmarks: [],
  datasets: {},
  target: { kind: 'model', name: 'tiny', model: { id: 'mdl_aaaaaaaaaaaa', name: 'tiny' }, job: null, step: null },
  created_at: '2026-01-01T00:00:00Z',
  started_at: '2026-01-01T00:00:00Z',
  finished_at: '2026-01-01T00:10:00Z',
  can_cancel: false,
  can_retry: false,
  can_delete: true,
} as unknown as Evaluation

beforeEach(() => {
  answering('GET', () => answer(200, { items: [], next_cursor: null, total: 0 }))
})
afterEach(() => {
  vi.restoreAllMocks()
})

describe('the head of an evaluation', () => {
  it('asks for a new report on this evaluation', async () => {
    const page = { template: '<p />' }
    const names = ['evaluations', 'evaluation-compare', 'model', 'job']
    const router = createRouter({
      history: createMemoryHistory(),
      routes: [
        { path: '/', component: page },
        { path: '/reports', component: page },
        ...names.map((name) => ({ path: `/${name}/:id?`, name, component: page })),
      ],
    })
    const { root, end } = mount(EvaluationHeader, { evaluation: EVALUATION, isBusy: false }, (app) => app.use(router))

    root.querySelector<HTMLElement>('[data-test=report]')?.click()

    await vi.waitFor(() => {
      expect(router.currentRoute.value.path).toBe('/reports')
    })
    expect(router.currentRoute.value.query).toEqual({ new: '1', evaluation: EVALUATION.id })
    end()
  })
})
