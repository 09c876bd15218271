import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import ClonedFrom from './ClonedFrom.vue'

function show() {
  const page = { template: '<p />' }
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: page },
      { path: '/jobs/compare', name: 'compareJobs', component: page },
      { path: '/jobs/:id', name: 'job', component: page },
    ],
  })
  return mount(ClonedFrom, { jobId: 'job_copy', sourceId: 'job_source' }, (app) => app.use(router))
}

afterEach(() => vi.restoreAllMocks())

describe('the source of a copied job', () => {
  it('has its name, and is one click from a comparison', async () => {
    answering('GET', () => answer(200, { id: 'job_source', name: 'first try' }))
    const { root, end } = show()

    await vi.waitFor(() => {
      expect(root.textContent).toContain('first try')
    })
    expect(root.querySelector('[data-test=compare-source]')?.getAttribute('href')).toBe(
      '/jobs/compare?ids=job_source,job_copy',
    )
    end()
  })

  it('says when it is gone', async () => {
    answering('GET', () => answer(404, { error: 'job_not_found', message: 'There is no such job.' }))
    const { root, end } = show()

    await vi.waitFor(() => {
      expect(root.textContent).toContain('deleted')
    })
    expect(root.querySelector('a')).toBeNull()
    end()
  })
})
