import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it } from 'vitest'
import type { Component } from 'vue'

import { mount } from '@/testing/withSetup'

import MetricsTable from './MetricsTable.vue'
import RunList from './RunList.vue'
import SettingsTable from './SettingsTable.vue'

const JOBS = ['a', 'b', 'c'].map((name, index) => ({
  id: `job_${name}`,
  name: `run ${name}`,
  state: 'succeeded',
  seed: index,
}))
const value = (best: number) => ({ key: 'val/loss', mode: 'min', last: best, last_step: 9, best, best_step: 3 })
const FOUND = {
  jobs: JOBS,
  missing: [],
  parameters: [{ group: 'params', name: 'learning_rate', values: { job_a: 0.0001, job_b: 0.0002 } }],
  metric_keys: [],
  metrics: [{ key: 'val/loss', mode: 'min', values: { job_a: value(2), job_b: value(1) } }],
  seed_groups: [['job_a', 'job_b']],
}

function show(component: Component, props: Record<string, unknown>) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/job/:id', name: 'job', component: { template: '' } }],
  })
  return mount(component, props, (app) => app.use(router))
}

describe('the tables of a comparison', () => {
  it('mark what is not as in the baseline', () => {
    const { root, end } = show(SettingsTable, { found: FOUND, baseline: 'job_a' })

    const cells = [...root.querySelectorAll('[data-setting=learning_rate] td')]
    expect(cells.map((cell) => [cell.textContent, cell.classList.contains('other')])).toEqual([
      ['1e-4', false],
      ['2e-4', true],
      ['—', true],
    ])
    end()
  })

  it('have the difference to the baseline, absolute and relative, and the mean over seeds', () => {
    const { root, end } = show(MetricsTable, { found: FOUND, baseline: 'job_a' })

    const cells = [...root.querySelectorAll('tr[data-metric="val/loss"] td')].map((cell) => cell.textContent ?? '')
    expect(cells[1]).toContain('−1 (−50.0%)')
    expect(root.querySelector('.better')).not.toBeNull()
    expect(cells[2]).toBe('—')
    expect(cells[3]).toMatch(/^1\.5 ± 0\.71$/)
    end()
  })

  it('list the runs with an eye and the baseline', () => {
    const heard: string[] = []
    const props = {
      jobs: JOBS,
      looks: new Map([['job_a', { color: 'red', dash: 'dashed' }]]),
      hidden: ['job_b'],
      baseline: 'job_a',
      onToggle: (id: string) => heard.push(`toggle ${id}`),
      onBaseline: (id: string) => heard.push(`baseline ${id}`),
    }
    const { root, end } = show(RunList, props)

    root.querySelector<HTMLElement>('[data-run=job_b] [data-test=eye]')?.click()
    root.querySelector<HTMLElement>('[data-run=job_c] [data-test=baseline]')?.click()

    expect(heard).toEqual(['toggle job_b', 'baseline job_c'])
    expect(root.querySelector('[data-run=job_b] [data-test=eye]')?.getAttribute('aria-pressed')).toBe('false')
    expect(root.querySelector('[data-run=job_a] line')?.getAttribute('stroke-dasharray')).toBe('7 3')
    end()
  })
})
