import { NDialogProvider, NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'

import { listenForShortcuts, shortcuts } from '@/composables/shortcuts'
import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import PlaygroundPage from './PlaygroundPage.vue'

const NAMES = ['base', 'trained']
const MODELS = NAMES.map((name) => ({
  id: `mdl_${name}`,
  name,
  architecture: 'Qwen3ForCausalLM',
  has_chat_template: true,
  lineage: {},
}))
const ENDPOINTS = MODELS.map(({ id, name }) => ({
  id: `ep_${name}`,
  name,
  kind: 'model',
  model: { id, name },
  job: null,
  step: null,
  state: 'ready',
  state_since: '2026-01-01T00:00:00Z',
  phase: null,
  shares_engine_of: null,
  sharing_refusal: null,
  stops_at: null,
  idle_timeout_s: 600,
  max_model_len: 2048,
  failure: null,
  load: null,
  preemptible: true,
  can_stop: true,
}))

let votes: unknown[]
let stopListening: () => void

beforeEach(() => {
  votes = []
  stopListening = listenForShortcuts()
  answering('GET', ({ path }) => {
    const items = path.endsWith('/models') ? MODELS : path.endsWith('/endpoints') ? ENDPOINTS : []
    return answer(200, { items, next_cursor: null })
  })
  answering('POST', ({ body }) => {
    votes.push(body)
    return answer(201, { id: 'vot_1' })
  })
})
afterEach(() => {
  stopListening()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

type Reply = (model: string, signal: AbortSignal) => Promise<Response>

function saying(text: string): Promise<Response> {
  const event = { choices: [{ delta: { content: text }, finish_reason: 'stop' }] }
  return Promise.resolve(new Response(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`))
}

/** The page with a blind vote between two models. */
async function open(reply: Reply) {
  vi.stubGlobal('fetch', (_: string, { body, signal }: { body: string; signal: AbortSignal }) =>
    reply((JSON.parse(body) as { model: string }).model, signal),
  )
  const nothing = { render: () => null }
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/playground', name: 'playground', component: nothing },
      { path: '/models/:id?', name: 'model', component: nothing },
      { path: '/registry', name: 'registry', component: nothing },
      { path: '/help/:name', component: nothing },
    ],
  })
  await router.push('/playground?m=base&m=trained&blind=1')
  const mounted = mount(
    { setup: () => () => h(NDialogProvider, () => h(NMessageProvider, () => h(PlaygroundPage))) },
    {},
    (app) => app.use(createPinia()).use(router),
  )
  const find = (name: string) => mounted.root.querySelector<HTMLElement>(`[data-test=${name}]`)
  const prompt = () => mounted.root.querySelector<HTMLTextAreaElement>('[data-test=prompt] textarea')
  const type = async (text: string) => {
    const field = prompt()
    if (field === null) throw new Error('there is no field')
    field.focus()
    field.value = text
    field.dispatchEvent(new Event('input'))
    await nextTick()
  }
  const press = (key: string, more: KeyboardEventInit = {}) => {
    const target = document.activeElement ?? document.body
    target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }))
  }
  await vi.waitFor(() => {
    expect(mounted.root.querySelectorAll('[data-test=letter]')).toHaveLength(2)
  })
  return { ...mounted, find, prompt, type, press }
}

async function until(check: () => boolean): Promise<void> {
  await vi.waitFor(() => {
    expect(check()).toBe(true)
  })
}

describe('a blind round by keys', () => {
  it('votes, names the models, and goes on to the next round', async () => {
    const { root, find, prompt, type, press, end } = await open((model) => saying(model === 'base' ? '3' : '2'))
    await type('1+1=')
    press('Enter', { ctrlKey: true })
    await until(() => document.activeElement === find('vote'))
    expect(find('endpoints')).toBeNull()

    press('3')
    await until(() => find('revealed') !== null)
    expect(votes).toMatchObject([{ verdict: 'tie', is_blind: true }])
    expect(root.textContent).toMatch(/A was (base|trained)\. B was/)
    await until(() => document.activeElement === find('next'))
    expect(find('endpoints')).not.toBeNull()
    press('r')
    await nextTick()

    expect([find('vote'), document.activeElement === prompt()]).toEqual([null, true])
    expect(root.querySelectorAll('[data-test=letter]')).toHaveLength(2)
    press('r') // typed
    await nextTick()
    expect(votes).toHaveLength(1)
    end()
  })

  it('leaves the focus where the next prompt is being typed', async () => {
    const finish: (() => void)[] = []
    const { find, prompt, type, press, end } = await open(
      () =>
        new Promise((resolve) => {
          finish.push(() => void saying('2').then(resolve))
        }),
    )
    await type('1+1=')
    press('Enter', { ctrlKey: true })
    await until(() => finish.length === 2)
    await type('2+2=')
    for (const answered of finish) answered()
    await until(() => find('vote') !== null)

    expect(document.activeElement === prompt()).toBe(true)
    press('1')
    expect(votes).toEqual([])
    end()
  })

  it('ends answers with Escape, in the field and elsewhere', async () => {
    const { root, find, prompt, type, press, end } = await open(
      (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(new DOMException('stopped', 'AbortError'))
          })
        }),
    )
    for (const isTyping of [true, false]) {
      await type('1+1=')
      press('Enter', { ctrlKey: true })
      await until(() => find('halt') !== null)
      press('Escape', { isComposing: true })
      await nextTick()
      expect(find('halt')).not.toBeNull()
      if (!isTyping) prompt()?.blur()
      press('Escape')
      await until(() => find('halt') === null)
    }
    expect(root.textContent.match(/Stopped\./g)).toHaveLength(4)
    end()
  })

  it('is in the list of shortcuts as long as the page is open', async () => {
    const { end } = await open(() => saying('2'))
    const keys = () => [...shortcuts].flatMap((one) => (one.label.startsWith('playground.keys.') ? one.keys : []))
    expect(keys()).toEqual(['1', '2', '3', '4', 'r', 'Escape'])
    end()
    expect(keys()).toEqual([])
  })
})

describe('a blind vote', () => {
  it('does not tell why a model did not answer, for that names it, until names are shown', async () => {
    const problem = { error: { message: "Model 'base' can't be served.", code: 'endpoint_failed' } }
    const { root, find, type, press, end } = await open((model) =>
      model === 'base' ? Promise.resolve(new Response(JSON.stringify(problem), { status: 503 })) : saying('2'),
    )
    await type('1+1=')
    press('Enter', { ctrlKey: true })
    await until(() => find('hidden-problem') !== null)
    expect(find('hidden-problem')?.textContent).toContain('No response.')
    expect(root.textContent).not.toMatch(/base|served/)

    find('blind')?.click()
    await until(() => root.textContent.includes("Model 'base' can't be served."))
    expect(find('hidden-problem')).toBeNull()
    end()
  })
})
