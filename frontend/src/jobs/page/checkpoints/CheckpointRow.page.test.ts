import { createMemoryHistory, createRouter } from 'vue-router'
import { h } from 'vue'
import { expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import CheckpointRow from './CheckpointRow.vue'

const CHECKPOINT = {
  step: 40,
  attempt: 1,
  path: 'x',
  hf_path: null,
  size_bytes: 8,
  metrics: { 'critic/score/mean': 0.31, 'val/loss': 1.5 },
  metric_steps: { 'critic/score/mean': 20 },
  created_at: new Date(0).toISOString(),
  is_best: false,
  is_kept: false,
  is_pruned: false,
  kept_because: [],
  evaluation: null,
  can_resume: false,
  can_export: false,
  can_delete: true,
  has_adapter: false,
}

it('says of which step a metric is that was not reported at the checkpoint’s own', () => {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  const props = { checkpoint: CHECKPOINT, columns: ['critic/score/mean', 'val/loss'], canResume: false, isBusy: false }
  const table = { setup: () => () => h('table', h('tbody', h(CheckpointRow, props as never))) }
  const { root, end } = mount(table, {}, (app) => app.use(router))

  expect([...root.querySelectorAll('td.num')].map((cell) => cell.textContent?.replace(/\s+/g, ' ').trim())).toEqual([
    '0.31 (step 20)',
    '1.5',
  ])
  end()
})
