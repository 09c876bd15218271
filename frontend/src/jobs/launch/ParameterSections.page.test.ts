import { createPinia } from 'pinia'
import { nextTick, reactive } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import { emptyDraft } from './draft'
import ParameterSections from './ParameterSections.vue'
import { emptySweep } from './sweep/draft'

const parameter = (name: string, group: string, advanced: boolean, type = 'float') => ({
  name,
  group,
  advanced,
  type,
  default: type === 'rewards' ? null : 1,
  title: { en: name, zh: name },
  help: { en: name, zh: name },
})
const RECIPE = {
  id: 'grpo',
  presets: [],
  parameters: [
    parameter('total_steps', 'run', false),
    parameter('save_every', 'run', true),
    parameter('learning_rate', 'optimisation', false),
    parameter('weight_decay', 'optimisation', true),
    parameter('clip_ratio', 'algorithm', true),
    parameter('reward', 'reward', false),
  ],
}

let root: HTMLElement
let end: () => void
function open(part: { params?: Record<string, number>; issues?: Map<string, unknown[]> } = {}) {
  const draft = reactive({ ...emptyDraft(), recipe: 'grpo', params: part.params ?? {} })
  const props = reactive({
    recipe: RECIPE,
    draft,
    sweep: reactive(emptySweep()),
    rewards: [],
    derived: {},
    issues: part.issues ?? new Map<string, unknown[]>(),
  })
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
  const mounted = mount(ParameterSections, props, (app) => app.use(router).use(createPinia()))
  ;({ root, end } = mounted)
  return { draft, props }
}

function shown(): string[] {
  return [...root.querySelectorAll<HTMLElement>('[data-field]')].map((field) =>
    (field.dataset.field ?? '').replace('params.', ''),
  )
}

function cards(): string[] {
  return [...root.querySelectorAll('legend')].map((legend) => legend.textContent?.trim() ?? '')
}

function turnSwitch(): Promise<void> {
  root.querySelector<HTMLElement>('[data-test=all-settings]')?.click()
  return nextTick()
}

beforeEach(() => {
  window.localStorage.clear()
})
afterEach(() => {
  end()
})

describe('the parameters of a recipe', () => {
  it('are the usual ones at first, and all of them by group with one switch that is remembered', async () => {
    open()
    expect(cards()).toEqual(['Settings', 'Reward'])
    expect(shown()).toEqual(['total_steps', 'learning_rate', 'reward'])
    expect(root.querySelector('[data-test=hidden-settings]')?.textContent).toBe('3 more')
    expect(root.querySelector('[role=switch]')?.getAttribute('aria-label')).toBe('All settings')

    await turnSwitch()
    expect(cards()).toEqual(['Run', 'Optimization', 'Algorithm', 'Reward'])
    expect(shown()).toHaveLength(RECIPE.parameters.length)
    expect(root.querySelector('[data-test=hidden-settings]')).toBeNull()

    end()
    open()
    expect(shown()).toHaveLength(RECIPE.parameters.length)
  })

  it('show a rare one that was turned, also while it is turned back', async () => {
    const { draft } = open({ params: { weight_decay: 0.5 } })
    expect(shown()).toEqual(['total_steps', 'learning_rate', 'weight_decay', 'reward'])

    draft.params = {}
    await nextTick()
    expect(shown()).toContain('weight_decay')

    await turnSwitch()
    await turnSwitch()
    expect(shown()).not.toContain('weight_decay')
  })

  it('show a rare one that something is wrong with', async () => {
    const { props } = open()
    props.issues = new Map([['params.clip_ratio', []]])
    await nextTick()

    expect(shown()).toContain('clip_ratio')
  })

  it('are found by a search wherever they are', async () => {
    open()
    const search = root.querySelector('input')
    if (search !== null) search.value = 'weight'
    search?.dispatchEvent(new Event('input'))

    await vi.waitFor(() => {
      expect(shown()).toEqual(['weight_decay'])
    })
    expect(cards()).toEqual(['Optimization'])
  })
})
