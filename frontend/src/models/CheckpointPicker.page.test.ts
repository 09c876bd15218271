import { afterEach, expect, it, vi } from 'vitest'
import { h, ref } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import CheckpointPicker from './CheckpointPicker.vue'

afterEach(() => {
  vi.restoreAllMocks()
})

const CHECKPOINTS = [
  { step: 100, hf_path: 'actor/huggingface', is_pruned: false, size_bytes: 9 },
  { step: 200, hf_path: null, is_pruned: false, size_bytes: 9 },
  { step: 300, hf_path: null, is_pruned: true, size_bytes: 9 },
]

it.each([
  [false, 100],
  [true, 200],
])('chooses the newest step of a training that can be used (of any format: %s)', async (takesAll, newest) => {
  const asked: unknown[] = []
  answering('GET', ({ path, query }) => {
    if (path.endsWith('/checkpoints')) return answer(200, { items: CHECKPOINTS, next_cursor: null })
    asked.push(query.kind)
    return answer(200, { items: [{ id: 'job_a', name: 'sums', recipe: 'sft', state: 'succeeded' }], next_cursor: null })
  })
  const step = ref<number | null>(null)
  const { end } = mount({
    setup: () => () =>
      h(CheckpointPicker, {
        takesAll,
        jobId: 'job_a',
        step: step.value,
        'onUpdate:step': (chosen: number | null) => (step.value = chosen),
      }),
  })

  await vi.waitFor(() => {
    expect(step.value).toBe(newest)
  })
  expect(asked).toEqual(['train'])
  end()
})
