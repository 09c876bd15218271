import { type App, h, reactive } from 'vue'
import { createMemoryHistory, createRouter, type Router, RouterView } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { providePlatform } from '@/composables/usePlatform'
import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { jobRoutes } from '../routes'
import { emptySweep } from './sweep/draft'
import { useKeptLaunch } from './useKeptLaunch'
import { useLaunchDraft } from './useLaunchDraft'

const recipe = (id: string, format: string) => ({
  id,
  data_formats: [format],
  parameters: [{ name: 'lr', type: 'float', default: 1 }],
  presets: [{ id: 'cpu-tiny', gpus: 1, params: {} }],
  headline_metrics: [],
})
const ANSWERS: Record<string, unknown> = {
  '/api/v1/recipes': { items: [recipe('grpo', 'prompt-answer'), recipe('sft', 'messages')] },
  '/api/v1/monitoring/dashboard': { platform: 'cpu', slots: { total: 1 }, resources: { gpus: [] } },
  '/api/v1/models': { items: ['mdl_a', 'mdl_b'].map((id) => ({ id, name: id, state: 'ready', parameter_count: 1 })) },
  '/api/v1/datasets': {
    items: [
      ...['dst_a', 'dst_b'].map((id) => ({ id, name: id, format: 'messages', row_count: 1, head: 'ver_a' })),
      { id: 'dst_c', name: 'dst_c', format: 'prompt-answer', row_count: 1, head: null },
    ],
  },
  '/api/v1/jobs/{job_id}': {
    id: 'job_a',
    name: 'first',
    recipe: 'grpo',
    preset: 'cpu-tiny',
    model: { id: 'mdl_a', name: 'mdl_a' },
    dataset: { id: 'dst_a', name: 'dst_a' },
    dataset_version: 'ver_a',
    dataset_split: null,
    validation_dataset: null,
    params: { lr: 3 },
    columns: {},
    data_format: null,
    overrides: {},
    seed: 7,
    resources: { gpus: 1 },
    tags: [],
    priority: 0,
    failure: null,
    export_as: null,
    keep_best_by: null,
    evaluate: null,
  },
}

type Form = ReturnType<typeof useLaunchDraft> & ReturnType<typeof useKeptLaunch>
let form: Form
let router: Router
let end: () => void

/** The form without its fields: what they write is written to the draft. */
const Page = {
  setup() {
    const launch = useLaunchDraft()
    form = {
      ...launch,
      ...useKeptLaunch(
        launch.address,
        launch.kept,
        launch.draft,
        reactive(launch.kept?.sweep ?? emptySweep()),
        launch.isSettled,
      ),
    }
    return () => null
  },
}

const Shell = {
  setup() {
    providePlatform()
    return () => h(RouterView)
  },
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setTimeout(resolve))
}

async function open(address: string): Promise<void> {
  await router.push(address)
  await settle()
}

beforeEach(async () => {
  window.sessionStorage.clear()
  answering('GET', ({ path }) => answer(200, ANSWERS[path]))
  const launch = jobRoutes.find(({ name }) => name === 'launch')
  router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { render: () => null } },
      { path: '/jobs/new', component: Page, props: launch?.props ?? false },
    ],
  })
  end = mount(Shell, {}, (app: App) => app.use(router)).end
  await settle()
})
afterEach(() => {
  end()
  vi.restoreAllMocks()
})

describe('a launch of which nothing was chosen', () => {
  it('starts from the data: from conversations with supervised training', async () => {
    await open('/jobs/new')
    expect(form.draft.recipe).toBe('sft')
    await open('/jobs/new?rewards=x')
    expect(form.draft.recipe).toBe('grpo')
  })
})

describe('the recipe of a launch', () => {
  it('follows the data, also after the form was left, until somebody chooses one', async () => {
    await open('/jobs/new')
    form.draft.dataset = 'dst_c'
    await settle()
    expect([form.draft.recipe, form.draft.preset, form.suitedId.value]).toEqual(['grpo', 'cpu-tiny', 'grpo'])
    await open('/')
    await open('/jobs/new')
    form.draft.dataset = 'dst_a'
    await settle()
    expect(form.draft.recipe).toBe('sft')

    form.chooseRecipe('sft')
    form.draft.dataset = 'dst_c'
    await settle()
    expect([form.draft.recipe, form.suitedId.value]).toEqual(['sft', 'grpo'])
  })

  it('stays where the address or a job that is copied says which', async () => {
    for (const address of ['/jobs/new?recipe=grpo', '/jobs/new?rewards=x', '/jobs/new?clone=job_a']) {
      await open(address)
      form.draft.dataset = 'dst_b'
      await settle()
      expect(form.draft.recipe).toBe('grpo')
    }
  })
})

describe('a copy of a job', () => {
  it.each([
    ['gpu-24gb', 'cpu-tiny'],
    ['cpu-tiny', 'cpu-tiny'],
    ['production', 'production'],
  ])('with preset %s gets %s on a CPU', async (was, becomes) => {
    const path = '/api/v1/jobs/{job_id}'
    answering('GET', (asked) =>
      answer(200, asked.path === path ? { ...(ANSWERS[path] as object), preset: was } : ANSWERS[asked.path]),
    )
    await open('/jobs/new?clone=job_a')
    expect(form.draft.preset).toBe(becomes)
    expect(form.draft.params).toEqual({ lr: 3 })
  })
})

describe('a launch that was left', () => {
  it('from a dataset is there again on the way back', async () => {
    await open('/jobs/new?dataset=dst_a&version=ver_a')
    expect([form.draft.recipe, form.draft.dataset, form.draft.datasetVersion, form.isRestored.value]).toEqual([
      'sft',
      'dst_a',
      'ver_a',
      false,
    ])
    form.draft.params = { lr: 2 }
    await open('/')
    await open('/jobs/new?dataset=dst_a&version=ver_a')

    expect([form.draft.params, form.draft.datasetVersion, form.isRestored.value]).toEqual([{ lr: 2 }, 'ver_a', true])
  })

  it('is not lost to a copy that is opened in between, and the copy is not taken for it', async () => {
    await open('/jobs/new')
    form.draft.params = { lr: 2 }
    await open('/jobs/new?clone=job_a')
    expect([form.draft.params, form.draft.datasetVersion, form.source.value?.name]).toEqual([
      { lr: 3 },
      'ver_a',
      'first',
    ])
    await open('/jobs/new')

    expect([form.draft.params, form.source.value]).toEqual([{ lr: 2 }, null])
    await open('/jobs/new?clone=job_a')
    expect(form.isRestored.value).toBe(false)
  })

  it('is kept where no more than a model was chosen, and not where nothing was', async () => {
    await open('/jobs/new')
    await open('/')
    await open('/jobs/new')
    expect(form.isRestored.value).toBe(false)

    form.draft.model = 'mdl_b'
    await open('/')
    await open('/jobs/new')

    expect([form.isRestored.value, form.draft.model]).toEqual([true, 'mdl_b'])
  })

  it('names the job that it copies, and begins anew with what that job had', async () => {
    await open('/jobs/new?clone=job_a')
    form.draft.params = { lr: 4 }
    await open('/')
    await open('/jobs/new?clone=job_a')
    expect([form.draft.params, form.source.value?.name]).toEqual([{ lr: 4 }, 'first'])

    form.startOver()
    await form.begin()
    await settle()
    expect([form.draft.params, form.draft.seed, form.draft.datasetVersion, form.isRestored.value]).toEqual([
      { lr: 3 },
      7,
      'ver_a',
      false,
    ])
    await open('/')
    await open('/jobs/new?clone=job_a')
    expect(form.isRestored.value).toBe(false)
  })

  it('is gone once it was sent', async () => {
    await open('/jobs/new')
    form.draft.name = 'mine'
    await settle()
    form.forget()
    await open('/')
    await open('/jobs/new')

    expect([form.draft.name, form.isRestored.value]).toEqual(['', false])
  })
})
