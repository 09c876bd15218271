import { createPinia } from 'pinia'
import { type App, h, nextTick } from 'vue'
import { createMemoryHistory, createRouter, type Router, RouterView } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { jobPipelineRoutes } from '../routes'
import NewPipelinePage from './NewPipelinePage.vue'

const STAGE = {
  id: 'sft',
  title: { en: 'Supervised', zh: '监督' },
  kind: 'train',
  recipe: 'own',
  exports: true,
  is_optional: false,
}
const TEMPLATE = {
  id: 'two',
  title: { en: 'Two stages', zh: '两阶段' },
  description: { en: 'x', zh: 'x' },
  stages: [STAGE],
}
const ANSWERS: Record<string, unknown> = {
  '/api/v1/job-pipelines/templates': { items: [TEMPLATE] },
  '/api/v1/models': { items: [{ id: 'mdl_a', name: 'tiny', state: 'ready' }], next_cursor: null },
  '/api/v1/job-pipelines/{job_pipeline_id}': {
    name: 'mine',
    description: 'of mine',
    stages: [
      { request: { id: 'a', title: 'a', kind: 'train', model: { base: 'mdl_a' }, recipe: 'own', exports: true } },
    ],
  },
}

let router: Router
let root: HTMLElement
let end: () => void

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setTimeout(resolve))
}

async function open(address: string): Promise<void> {
  await router.push(address)
  await settle()
}

function nameField(): HTMLInputElement | null {
  return root.querySelector<HTMLInputElement>('#pipeline-name')
}

async function type(text: string): Promise<void> {
  const field = nameField()
  if (field !== null) field.value = text
  field?.dispatchEvent(new Event('input'))
  await nextTick()
}

const isRestored = () => root.querySelector('[data-test=restored]') !== null

beforeEach(async () => {
  window.sessionStorage.clear()
  answering('GET', ({ path }) => answer(200, ANSWERS[path] ?? { items: [], next_cursor: null }))
  answering('POST', () => answer(200, { document: null, problems: [] }))
  router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { render: () => null } },
      { path: '/help/:page', component: { render: () => null } },
      {
        path: '/job-pipelines/new',
        component: NewPipelinePage,
        props: jobPipelineRoutes.find(({ name }) => name === 'job-pipeline-new')?.props ?? false,
      },
    ],
  })
  const mounted = mount({ render: () => h(RouterView) }, {}, (app: App) => app.use(router).use(createPinia()))
  ;({ root, end } = mounted)
  await settle()
})
afterEach(() => {
  end()
  vi.restoreAllMocks()
})

describe('a workflow that was begun', () => {
  it('comes back as it was left, with its stages, until somebody starts over', async () => {
    await open('/job-pipelines/new')
    expect(isRestored()).toBe(false)
    await open('/')
    await open('/job-pipelines/new')
    expect(isRestored()).toBe(false)

    root.querySelector<HTMLElement>('[data-template=two] button, [data-template=two]')?.click()
    await type('for the weekend')
    await open('/')
    await open('/job-pipelines/new')
    expect([isRestored(), nameField()?.value]).toEqual([true, 'for the weekend'])
    expect(root.textContent).toContain('Supervised')

    root.querySelector<HTMLElement>('[data-test=start-over]')?.click()
    await settle()
    expect([isRestored(), nameField()?.value]).toEqual([false, ''])
    await open('/')
    await open('/job-pipelines/new')
    expect([isRestored(), nameField()?.value]).toEqual([false, ''])
  })

  it('is another than a copy, which comes back with what was changed in it', async () => {
    await open('/job-pipelines/new?copy=pip_a')
    const first = nameField()?.value
    await type('again')
    await open('/job-pipelines/new')
    expect([isRestored(), nameField()?.value]).toEqual([false, ''])

    await open('/job-pipelines/new?copy=pip_a')
    expect([isRestored(), nameField()?.value]).toEqual([true, 'again'])
    root.querySelector<HTMLElement>('[data-test=start-over]')?.click()
    await settle()
    expect([isRestored(), nameField()?.value]).toEqual([false, first])
  })
})
