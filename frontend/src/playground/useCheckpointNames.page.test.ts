import { afterEach, expect, it, vi } from 'vitest'
import { ref } from 'vue'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { useCheckpointNames } from './useCheckpointNames'

afterEach(() => {
  vi.restoreAllMocks()
})

it('reads a few names at a time, and none after the page was left', async () => {
  const open: (() => void)[] = []
  answering('GET', () => new Promise((resolve) => open.push(() => resolve(answer(200, { name: 'sums' })))))
  const { it: choices, end } = withSetup(() =>
    useCheckpointNames(
      () => [...'abcdefgh'].map((letter) => `job_${letter.repeat(12)}:1`),
      () => [],
    ),
  )
  expect(open).toHaveLength(3)
  open[0]?.()
  await vi.waitFor(() => {
    expect(open).toHaveLength(4)
  })
  expect(choices.value[0]?.label).toBe('sums @ 1')

  end()
  for (const give of open) give()
  await new Promise((resolve) => setTimeout(resolve))
  expect(open).toHaveLength(4)
})

it('names checkpoints by their jobs, each of which is read once; what is gone keeps its ID', async () => {
  const asked: (string | undefined)[] = []
  answering('GET', ({ parts: { job_id: id } }) => {
    asked.push(id)
    return id === 'job_aaaaaaaaaaaa'
      ? answer(200, { id, name: 'sums' })
      : answer(404, { error: 'job_not_found', message: 'none', details: null })
  })
  const models = ref(['base', 'job_aaaaaaaaaaaa:100', 'job_aaaaaaaaaaaa:200', 'job_cccccccccccc:3'])
  const { it: choices, end } = withSetup(() =>
    useCheckpointNames(
      () => models.value,
      () => [{ value: 'job_cccccccccccc:3', label: 'served @ 3' }],
    ),
  )
  await vi.waitFor(() => {
    expect(choices.value).toEqual([
      { value: 'job_aaaaaaaaaaaa:100', label: 'sums @ 100' },
      { value: 'job_aaaaaaaaaaaa:200', label: 'sums @ 200' },
    ])
  })

  models.value = ['job_aaaaaaaaaaaa:100', 'job_bbbbbbbbbbbb:1']
  await vi.waitFor(() => {
    expect(asked).toEqual(['job_aaaaaaaaaaaa', 'job_bbbbbbbbbbbb'])
  })
  expect(choices.value).toEqual([
    { value: 'job_aaaaaaaaaaaa:100', label: 'sums @ 100' },
    { value: 'job_bbbbbbbbbbbb:1', label: 'job_bbbbbbbbbbbb:1' },
  ])
  end()
})
