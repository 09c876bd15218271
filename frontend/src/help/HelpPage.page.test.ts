import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import HelpPage from './HelpPage.vue'

describe('the documentation', () => {
  // The router gives an empty name to an address without one.
  it.each([undefined, ''])('opens with its first document for the name %o', async (name) => {
    const router = createRouter({
      history: createMemoryHistory(),
      routes: [
        { path: '/', component: { template: '' } },
        { path: '/help/:name?', name: 'help', component: { template: '' } },
      ],
    })
    const { root, end } = mount(HelpPage, { name }, (app) => app.use(router))

    await vi.waitFor(() => {
      expect(root.querySelector('article h2')?.textContent).toBe('Data')
    })
    expect(root.querySelector('[aria-current=page]')?.textContent).toBe('Data')
    end()
  })
})
