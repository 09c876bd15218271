import { type App, h } from 'vue'
import { createMemoryHistory, createRouter, type Router, RouterView } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { evaluationRoutes } from '../routes'
import { useEvaluationDraft } from './useEvaluationDraft'

let form: ReturnType<typeof useEvaluationDraft>
let router: Router
let end: () => void

/** The form without its fields: what they write is written to the draft. */
const Page = {
  setup() {
    form = useEvaluationDraft()
    return () => null
  },
}

async function open(address: string): Promise<void> {
  await router.push(address)
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setTimeout(resolve))
}

beforeEach(async () => {
  window.sessionStorage.clear()
  answering('GET', ({ parts }) => answer(200, { id: parts.job_id, name: 'first' }))
  answering('POST', () => answer(200, {}))
  router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { render: () => null } },
      {
        path: '/evaluations/new',
        component: Page,
        props: evaluationRoutes.find(({ name }) => name === 'evaluation-new')?.props ?? false,
      },
    ],
  })
  end = mount({ render: () => h(RouterView) }, {}, (app: App) => app.use(router)).end
  await open('/')
})
afterEach(() => {
  end()
  vi.restoreAllMocks()
})

describe('an evaluation that was begun', () => {
  it('comes back as it was left, and its benchmarks get numbers of their own', async () => {
    await open('/evaluations/new')
    form.draft.models = ['mdl_a']
    form.addOrder('gsm8k')
    await open('/')
    await open('/evaluations/new')
    expect([form.isRestored.value, form.draft.models, form.draft.orders.map(({ benchmark }) => benchmark)]).toEqual([
      true,
      ['mdl_a'],
      ['gsm8k'],
    ])

    form.addOrder('math')
    expect(new Set(form.draft.orders.map(({ key }) => key)).size).toBe(2)
  })

  it('is one for each link, and begins anew with what the link asks for', async () => {
    const link = '/evaluations/new?job=job_a&step=10&benchmarks=gsm8k'
    await open(link)
    expect(form.draft.checkpoints).toEqual([{ job: 'job_a', name: 'first', step: 10 }])
    await open('/evaluations/new')
    expect([form.isRestored.value, form.draft.checkpoints]).toEqual([false, []])

    await open(link)
    expect(form.isRestored.value).toBe(false)
    form.draft.seed = 7
    await open('/')
    await open(link)
    expect([form.isRestored.value, form.draft.seed]).toEqual([true, 7])

    form.startOver()
    expect([form.isRestored.value, form.draft.seed, form.draft.orders.length]).toEqual([false, 0, 1])
    expect(form.draft.checkpoints).toEqual([{ job: 'job_a', name: 'first', step: 10 }])
    await open('/')
    await open(link)
    expect(form.isRestored.value).toBe(false)
  })

  it('is gone once it was started', async () => {
    await open('/evaluations/new')
    form.draft.name = 'mine'
    await open('/evaluations/new')
    form.forget()
    await open('/')
    await open('/evaluations/new')

    expect([form.isRestored.value, form.draft.name]).toEqual([false, ''])
  })
})
