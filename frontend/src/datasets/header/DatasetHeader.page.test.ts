import { NDialogProvider, NMessageProvider } from 'naive-ui'
import { createMemoryHistory, createRouter } from 'vue-router'
import { h } from 'vue'
import { describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import type { Dataset } from '../types'
import type { Shown } from '../useRevision'
import DatasetHeader from './DatasetHeader.vue'

const OLD = 'a'.repeat(64)
const DATASET = {
  id: 'ds_aaaaaaaaaaaa',
  name: 'sums',
  description: '',
  state: 'ready',
  head: 'b'.repeat(64),
  format: 'messages',
  format_columns: {},
  format_reason: '',
  columns: [],
  splits: { train: 45 },
  row_count: 45,
  size_bytes: 10,
  version_count: 2,
  licences: [],
  tags: [],
  source: { kind: 'upload', name: 'sums.jsonl' },
  warnings: [],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
} as unknown as Dataset
const shown: Shown = {
  revision: OLD,
  version: OLD,
  splits: { train: 40 },
  split: 'train',
  rowCount: 40,
  format: 'messages',
  format_columns: {},
  columns: [],
}

function show() {
  const page = { template: '<p />' }
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: page },
      { path: '/jobs/new', component: page },
      { path: '/datasets', component: page },
    ],
  })
  const content = () =>
    h(NMessageProvider, null, {
      default: () =>
        h(NDialogProvider, null, { default: () => h(DatasetHeader, { dataset: DATASET, revision: OLD, shown }) }),
    })
  return { router, ...mount({ render: content }, {}, (app) => app.use(router)) }
}

describe('the head of a dataset', () => {
  it('trains on the version that is shown', async () => {
    const { root, router, end } = show()

    root.querySelector<HTMLElement>('[data-test=train]')?.click()

    await vi.waitFor(() => {
      expect(router.currentRoute.value.path).toBe('/jobs/new')
    })
    expect(router.currentRoute.value.query).toEqual({ dataset: DATASET.id, version: OLD })
    end()
  })

  it('has deleting in a menu, away from training', async () => {
    const { root, end } = show()
    expect([...root.querySelectorAll('button')].map((button) => button.textContent.trim())).not.toContain('Delete')

    root.querySelector<HTMLElement>('[aria-label="More actions for sums"]')?.click()
    await vi.waitFor(() => {
      expect(document.querySelector('.n-dropdown-menu')?.textContent).toContain('Delete')
    })
    end()
  })
})
