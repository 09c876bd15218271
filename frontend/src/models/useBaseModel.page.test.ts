import { afterEach, expect, it, vi } from 'vitest'
import { shallowRef } from 'vue'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import type { Model } from './types'
import { useBaseModel } from './useBaseModel'

afterEach(() => {
  vi.restoreAllMocks()
})

function trainedFrom(id: string | null) {
  return { lineage: { model_id: id, model_name: 'as it was called' } as Model['lineage'] }
}

it('names the base of a model by what it is called now, and none that is gone', async () => {
  const asked: (string | undefined)[] = []
  answering('GET', ({ parts: { model_id: id } }) => {
    asked.push(id)
    if (id === 'mdl_gone') return answer(404, { error: 'model_not_found', message: 'none', details: null })
    return answer(200, { id, name: 'renamed', state: id === 'mdl_base' ? 'ready' : 'failed' })
  })
  const model = shallowRef<ReturnType<typeof trainedFrom> | null>(null)
  const { it: name, end } = withSetup(() => useBaseModel(() => model.value))
  expect([name.value, asked]).toEqual([null, []])

  model.value = trainedFrom('mdl_base')
  await vi.waitFor(() => {
    expect(name.value).toBe('renamed')
  })
  for (const id of ['mdl_gone', 'mdl_failed']) {
    model.value = trainedFrom(id)
    await vi.waitFor(() => {
      expect(asked.at(-1)).toBe(id)
    })
    await Promise.resolve()
    expect(name.value).toBeNull()
  }
  model.value = trainedFrom(null)
  expect(asked).toEqual(['mdl_base', 'mdl_gone', 'mdl_failed'])
  end()
})
