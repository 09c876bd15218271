import { nextTick } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { type Asked, answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import RolloutsPart from './RolloutsPart.vue'

const FOUND = { jobs: ['a', 'b', 'c'].map((name) => ({ id: `job_${name}`, name })) }
const response = (id: number) => [{ id, response: `said ${id}`, score: 1 }]
let asked: Asked['query'][]

beforeEach(() => {
  asked = []
  answering('GET', ({ query }) => {
    asked.push(query)
    return answer(200, {
      split: 'validation',
      steps: { job_a: 3, job_c: 9 },
      // Told with the first page only.
      available_steps: Number(query.offset) === 0 ? [3, 9, 20] : [],
      without: ['job_b'],
      total: 9,
      items: [{ prompt: 'one', responses: { job_a: response(1), job_c: response(2) } }],
    })
  })
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

async function show(props: object) {
  const shown = mount(RolloutsPart, { found: FOUND, hidden: [], split: 'validation', step: null, ...props })
  await vi.waitFor(() => {
    if (shown.root.querySelector('article, .without') === null) throw new Error('nothing has been read')
  })
  return shown
}

/** As a keyboard does: the list itself asks for what this page does not have. */
async function chooseStep(root: HTMLElement, step: string) {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
  Object.defineProperty(Element.prototype, 'scrollTo', { value: () => undefined, configurable: true })
  root.querySelector<HTMLElement>('[data-test=step] .n-base-selection-label')?.click()
  await nextTick()
  const input = root.querySelector<HTMLInputElement>('[data-test=step] input')
  if (input === null) throw new Error('there is no field for the step')
  input.value = step
  input.dispatchEvent(new Event('input', { bubbles: true }))
  await nextTick()
  input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))
}

describe('the answers of compared runs', () => {
  it('are those of the step that is chosen, and the newest before', async () => {
    const newest = await show({})
    newest.end()
    const chosen = await show({ step: 20, split: 'train' })
    chosen.end()

    expect(asked).toMatchObject([
      { ids: ['job_a,job_b,job_c'], step: undefined, split: 'validation' },
      { step: 20, split: 'train' },
    ])
  })

  it('leave the choice of a step to the address', async () => {
    const changes: object[] = []
    const { root, end } = await show({ onChange: (part: object) => changes.push(part) })
    await chooseStep(root, '20')

    await vi.waitFor(() => expect(changes).toEqual([{ step: 20 }]))
    end()
  })

  it('offer the steps of the first page on the others too', async () => {
    const changes: object[] = []
    const { root, end } = await show({ onChange: (part: object) => changes.push(part) })
    root.querySelector<HTMLElement>('.pages button:last-child')?.click()
    await vi.waitFor(() => expect(asked.map((query) => query.offset)).toEqual([0, 5]))
    await vi.waitFor(() => expect(root.querySelector('.pages > span')?.textContent).toContain('6'))
    await chooseStep(root, '20')

    await vi.waitFor(() => expect(changes).toEqual([{ step: 20 }]))
    end()
  })

  it('leave out hidden runs, and name those that have none', async () => {
    const { root, end } = await show({ hidden: ['job_c'] })

    expect(asked[0]?.ids).toEqual(['job_a,job_b'])
    expect(root.querySelector('[data-test=without]')?.textContent).toBe('No responses here: b')
    expect([...root.querySelectorAll('h3')].map((each) => each.textContent?.trim())).toEqual(['a step 3', 'c step 9'])
    end()
    const none = await show({ hidden: ['job_a', 'job_b', 'job_c'] })
    expect([asked.length, none.root.textContent]).toEqual([1, expect.stringContaining('All runs are hidden.')])
    none.end()
  })
})
