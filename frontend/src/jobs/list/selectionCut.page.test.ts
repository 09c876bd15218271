import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount, withSetup } from '@/testing/withSetup'

import SelectionBar from './SelectionBar.vue'
import { useJobList } from './useJobList'
import { MOST_SELECTED } from './view'

afterEach(() => vi.restoreAllMocks())

it('says how many jobs were to be chosen where they are too many', async () => {
  answering('GET', () => answer(200, { items: [], next_cursor: null }))
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  await router.push('/')
  const { it: list, end } = withSetup(
    () => useJobList(() => false),
    (app) => app.use(router),
  )
  const ids = Array.from({ length: MOST_SELECTED + 5 }, (_, index) => `job_${index}`)

  list.select(ids, true)
  await vi.waitFor(() => {
    expect(list.selected.value.size).toBe(MOST_SELECTED)
  })
  expect(list.selectionCut.value).toBe(MOST_SELECTED + 5)
  const bar = mount(SelectionBar, { count: MOST_SELECTED, jobs: [], busy: null, cutFrom: list.selectionCut.value })
  expect(bar.root.querySelector('[data-test=cut]')?.textContent).toContain('50 of 55')
  bar.end()

  list.select(['job_0'], false)
  await vi.waitFor(() => {
    expect(list.selectionCut.value).toBeNull()
  })
  end()
})
