import { nextTick, reactive } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { pending } from '@/testing/pending'
import { mount } from '@/testing/withSetup'

import PromptMap from './PromptMap.vue'

function mapOf(steps: number) {
  const numbers = Array.from({ length: steps }, (_, at) => at)
  return {
    columns: numbers.map((step) => ({ from_step: step, to_step: step })),
    prompt_count: 1,
    rows: [
      {
        prompt_key: 'p1',
        excerpt: 'What is 1 + 1?',
        cells: numbers.map((step) => ({ column: step, step, count: 2, mean: 0.5, tokens: 8, is_uniform: false })),
      },
    ],
    totals: { groups: steps, uniform: 0, all_correct: 0, all_wrong: 0, tokens: 8 * steps, uniform_tokens: 0 },
  }
}

let next: () => unknown = () => answer(200, mapOf(1))

beforeEach(() => {
  answering('GET', () => next())
})
afterEach(() => {
  vi.restoreAllMocks()
})

const cells = (root: Element) => [...root.querySelectorAll<HTMLElement>('[data-place]')]

describe('the map of prompts of a run that goes on', () => {
  it('stays while it is read again, with the cell that has the focus', async () => {
    const props = reactive({ jobId: 'job_a', split: 'train' as 'train' | 'validation', version: 0 })
    next = () => answer(200, mapOf(1))
    const { root, end } = mount(PromptMap, props)
    await vi.waitFor(() => {
      expect(cells(root)).toHaveLength(1)
    })
    cells(root)[0]?.focus()

    const second = pending()
    next = () => second.answer
    props.version = 1
    await nextTick()
    await nextTick()
    expect(cells(root)).toHaveLength(1)
    expect(document.activeElement).toBe(cells(root)[0])

    second.give(answer(200, mapOf(2)))
    await vi.waitFor(() => {
      expect(cells(root)).toHaveLength(2)
    })
    expect(document.activeElement).toBe(cells(root)[0])
    end()
  })

  it('leaves when the responses of the other split are asked for', async () => {
    const props = reactive({ jobId: 'job_a', split: 'train' as 'train' | 'validation', version: 0 })
    next = () => answer(200, mapOf(1))
    const { root, end } = mount(PromptMap, props)
    await vi.waitFor(() => {
      expect(cells(root)).toHaveLength(1)
    })

    next = () => pending().answer
    props.split = 'validation'
    await vi.waitFor(() => {
      expect(cells(root)).toHaveLength(0)
    })
    end()
  })
})
