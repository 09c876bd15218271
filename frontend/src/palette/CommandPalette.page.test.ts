import { createPinia } from 'pinia'
import { NMessageProvider } from 'naive-ui'
import { createMemoryHistory, createRouter, type Router } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineComponent, h, nextTick, ref } from 'vue'

import { i18n } from '@/i18n'
import { answer, answering } from '@/testing/platform'
import { RECIPE_NAMES } from '@/testing/recipes'
import { mount } from '@/testing/withSetup'

import CommandPalette from './CommandPalette.vue'

const NEWEST = [
  {
    kind: 'job',
    id: 'job_aaaaaaaaaaaa',
    name: 'Sums',
    state: 'running',
    detail: 'grpo',
    created_at: '2026-01-02T00:00:00Z',
  },
  {
    kind: 'dataset',
    id: 'ds_aaaaaaaaaaaa',
    name: 'Questions',
    state: 'ready',
    detail: null,
    created_at: '2026-01-03T00:00:00Z',
  },
]

let end: () => void
let router: Router
const searched: unknown[] = []
const show = ref(true)
const help = vi.fn()

beforeEach(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
  searched.length = 0
  show.value = true
  help.mockClear()
  answering('GET', ({ path, query }) => {
    if (path.endsWith('/recipes/names')) return answer(200, RECIPE_NAMES)
    searched.push(query.text)
    if (query.text === 'broken') return answer(500, { error: 'internal_error', message: 'It broke.', details: {} })
    return answer(200, { items: NEWEST.filter(({ name }) => name.toLowerCase().includes(String(query.text))) })
  })
  const page = { template: '<p />' }
  const names = ['job', 'dataset', 'launch', 'evaluation-new', 'pipeline-new', 'job-pipeline-new']
  router = createRouter({
    history: createMemoryHistory(),
    routes: [
      ...names.map((name) => ({ path: `/${name}/:id?`, name, component: page })),
      { path: '/:rest(.*)*', component: page },
    ],
  })
  await router.push('/')
  const host = defineComponent(
    () => () =>
      h(NMessageProvider, () =>
        h(CommandPalette, { show: show.value, 'onUpdate:show': (is: boolean) => (show.value = is), onHelp: help }),
      ),
  )
  end = mount(host, {}, (app) => app.use(router).use(createPinia())).end
  await vi.waitFor(() => input())
})

afterEach(() => {
  end()
  i18n.global.locale.value = 'en'
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

function input(): HTMLInputElement {
  const found = document.querySelector<HTMLInputElement>('[role=combobox]')
  if (found === null) throw new Error('not open')
  return found
}

function type(text: string): void {
  input().value = text
  input().dispatchEvent(new Event('input'))
}

async function press(key: string): Promise<void> {
  input().dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
  await nextTick()
}

const labels = () => [...document.querySelectorAll('[role=option] .label')].map((each) => each.textContent)
const active = () => document.querySelector('[role=option][aria-selected=true]')
const groupTitles = () =>
  [...document.querySelectorAll('[role=listbox] [role=presentation]')].map((each) => each.textContent)

describe('the command palette', () => {
  it('begins with what is newest, then actions and pages', async () => {
    await vi.waitFor(() => {
      expect(groupTitles()).toEqual(['Recent', 'Actions', 'Pages', 'Documentation'])
    })

    expect(labels().slice(0, 3)).toEqual(['Questions', 'Sums', 'New job'])
    expect(labels()).toContain('Data pipelines')
    expect(labels()).toContain('Agent code')
    const job = document.getElementById('palette-job-job_aaaaaaaaaaaa')
    expect(job?.textContent).toContain('job')
    expect(job?.querySelector('[data-state=running]')).not.toBeNull()
    // The recipe's name, or its id until the names are here.
    expect(job?.querySelector('.detail')?.textContent?.toLowerCase()).toBe('grpo')
  })

  it('finds things by name, and opens one with the keyboard', async () => {
    type('sums')
    await vi.waitFor(() => {
      expect(groupTitles()).toEqual(['Jobs'])
    })
    expect(searched.at(-1)).toBe('sums')
    expect(input().getAttribute('aria-activedescendant')).toBe('palette-job-job_aaaaaaaaaaaa')

    await press('Enter')

    await vi.waitFor(() => {
      expect(router.currentRoute.value.path).toBe('/job/job_aaaaaaaaaaaa')
    })
    expect(show.value).toBe(false)
  })

  it('moves with the arrows, around the ends', async () => {
    type('theme')
    await vi.waitFor(() => {
      expect(labels()).toHaveLength(2)
    })
    const [first, last] = labels()

    expect(active()?.querySelector('.label')?.textContent).toBe(first)
    await press('ArrowUp')
    expect(active()?.querySelector('.label')?.textContent).toBe(last)
    expect(input().getAttribute('aria-activedescendant')).toBe(active()?.id)
    await press('ArrowDown')
    expect(active()?.querySelector('.label')?.textContent).toBe(first)
  })

  it('runs actions', async () => {
    type('keyboard')
    await vi.waitFor(() => {
      expect(labels()).toEqual(['Show keyboard shortcuts'])
    })

    await press('Enter')

    await vi.waitFor(() => {
      expect(help).toHaveBeenCalledTimes(1)
    })
  })

  it('says when nothing fits, and when the search failed', async () => {
    type('zzz')
    await vi.waitFor(() => {
      expect(document.querySelector('[data-test=palette]')?.textContent).toContain('Nothing found for “zzz”.')
    })

    type('broken')
    await vi.waitFor(() => {
      expect(document.querySelector('[role=alert]')?.textContent).toContain('The search failed: It broke.')
    })
  })

  it('speaks the language of the page', async () => {
    i18n.global.locale.value = 'zh'
    await vi.waitFor(() => {
      expect(groupTitles()).toEqual(['最近', '操作', '页面', '文档'])
    })

    type('数据')
    await vi.waitFor(() => {
      expect(labels()).toContain('数据流水线')
    })
  })
})
