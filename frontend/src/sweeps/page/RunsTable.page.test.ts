import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it } from 'vitest'

import { i18n } from '@/i18n'
import { mount } from '@/testing/withSetup'

import RunsTable from './RunsTable.vue'

const RUN = {
  index: 0,
  trial: 0,
  seed: 1,
  values: { lr: 0.1 },
  state: 'succeeded',
  job: { id: 'job_a', name: 'a' },
  job_state: 'succeeded',
  progress: null,
  value: 1,
  value_step: 4,
  duration_s: 3,
  pruned_at: null,
  problem: null,
  prune_reason: null,
}
const TRIAL = {
  trial: 0,
  values: { lr: 0.1 },
  run_count: 1,
  finished_seeds: 1,
  planned_seeds: 3,
  mean: 1,
  spread: null,
}
const REASON =
  "Stopped early by the sweep's rule asha: at step 4, val/loss was 2, worse than enough of the 3 other runs measured there."

const LOST = 'The run stopped reporting, and the Ray cluster cannot be reached.'

function show() {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/:id', name: 'job', component: { template: '' } }],
  })
  const runs = [
    RUN,
    { ...RUN, index: 1, trial: 1, state: 'pruned', job_state: 'stopped', prune_reason: REASON },
    { ...RUN, index: 2, trial: 1, state: 'failed', job_state: 'crashed', problem: LOST },
  ]
  const sweep = {
    runs,
    trials: [TRIAL, { ...TRIAL, trial: 1, finished_seeds: 3 }],
    objective: { metric: 'val/loss', mode: 'min', take: 'best' },
    best_run: 0,
  }
  return mount(RunsTable, { sweep, marked: null }, (app) => app.use(router))
}

describe('the runs of a sweep', () => {
  afterEach(() => {
    i18n.global.locale.value = 'en'
  })

  it('say in the language of the page why one failed or was stopped', () => {
    i18n.global.locale.value = 'zh'
    const { root, end } = show()

    expect(root.querySelector('[data-test=problem]')?.textContent).toBe('运行不再报告，并且无法连接 Ray 集群。')
    expect(root.querySelector('[data-test=prune-reason]')?.textContent).toContain('提前停止规则 asha')
    end()
  })

  it('say why one was stopped early, and not as an error', () => {
    const { root, end } = show()

    const told = root.querySelectorAll('[data-test=prune-reason]')
    expect([...told].map((one) => one.textContent)).toEqual([expect.stringContaining(REASON)])
    expect(told[0]?.classList.contains('problem')).toBe(false)
    end()
  })

  it('say of which trials seeds are missing', () => {
    const { root, end } = show()

    expect([...root.querySelectorAll('[data-test=seeds-of]')].map((one) => one.textContent)).toEqual(['1 of 3 seeds'])
    end()
  })
})
