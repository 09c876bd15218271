import { NMessageProvider } from 'naive-ui'
import { createMemoryHistory, createRouter } from 'vue-router'
import { defineComponent, h } from 'vue'
import { afterEach, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { useJobCheckpoint } from './useJobCheckpoint'

async function open(items: object[], base: string | null = 'tiny') {
  answering('GET', ({ path }) =>
    path.endsWith('/checkpoints')
      ? answer(200, { items })
      : answer(200, { id: 'job_a', name: 'sums', model: { id: 'mdl_a', name: base } }),
  )
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/playground', component: { template: '' } }],
  })
  await router.push('/playground?job=sums')
  const chosen: string[][] = []
  const user = defineComponent(() => {
    useJobCheckpoint((names) => chosen.push(names))
    return () => null
  })
  const { end } = mount(
    defineComponent(() => () => h(NMessageProvider, () => h(user))),
    {},
    (app) => app.use(router),
  )
  return { chosen, end }
}

afterEach(() => vi.restoreAllMocks())

it('chooses the base model and the newest checkpoint that is still there', async () => {
  const { chosen, end } = await open([
    { step: 10, is_pruned: false },
    { step: 30, is_pruned: true },
    { step: 20, is_pruned: false },
  ])

  await vi.waitFor(() => {
    expect(chosen).toEqual([['tiny', 'job_a:20']])
  })
  end()
})

it('chooses the checkpoint alone where the base model was deleted', async () => {
  const { chosen, end } = await open([{ step: 10, is_pruned: false }], null)

  await vi.waitFor(() => {
    expect(chosen).toEqual([['job_a:10']])
  })
  end()
})

it('says so where there is no checkpoint left', async () => {
  const { chosen, end } = await open([{ step: 10, is_pruned: true }])

  await vi.waitFor(() => {
    expect(document.body.textContent).toContain('no checkpoint left to chat with')
  })
  expect(chosen).toEqual([])
  end()
})
