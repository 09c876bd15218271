import { describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'

import { mount } from '@/testing/withSetup'

const { get } = vi.hoisted(() => ({ get: vi.fn<(path: string, options: { params: { query: { step?: number } } }) => unknown>(() => ({ data: { items: [], total: 0, steps: {} } })) }))
vi.mock('@/api/client', () => ({ api: { GET: get }, unwrap: (answer: { data: unknown }) => Promise.resolve(answer.data) }))

describe('the answers of compared runs', () => {
  it('are those of the step that is chosen, and the newest before', async () => {
    const { default: RolloutsPart } = await import('./RolloutsPart.vue')
    const { root, end } = mount(RolloutsPart, { found: { jobs: [{ id: 'job_a', name: 'a' }] } })
    await nextTick()
    const input = root.querySelector<HTMLInputElement>('[data-test=step] input')
    if (input === null) throw new Error('there is no field for the step')
    input.value = '20'
    input.dispatchEvent(new Event('input', { bubbles: true }))
    input.dispatchEvent(new Event('change', { bubbles: true }))
    input.dispatchEvent(new Event('blur', { bubbles: true }))
    await new Promise((resolve) => setTimeout(resolve, 50))

    expect(get.mock.calls.map(([, options]) => options.params.query.step)).toEqual([undefined, 20])
    end()
  })
})
