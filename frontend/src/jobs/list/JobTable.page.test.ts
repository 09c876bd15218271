import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import type { Job } from '../types'
import { COLUMNS } from './columns'
import JobTable from './JobTable.vue'

const EMPTY = {
  id: 'job_a',
  name: 'first',
  kind: 'train',
  state: 'succeeded',
  recipe: 'sft',
  model: { id: 'mdl_a', name: 'tiny' },
  dataset: null,
  sweep: null,
  group: null,
  tags: ['sweep'],
  is_starred: false,
  attempt: 1,
  created_at: '2026-01-01T00:00:00Z',
  started_at: '2026-01-01T00:00:00Z',
  finished_at: '2026-01-01T00:01:00Z',
  earlier_run_time_s: 0,
  progress: { phase: null, step: 2, total_steps: 4, fraction: 0.5 },
  eta_s: null,
  queue_position: null,
  failure: null,
  metric: null,
  fields: {},
  field_modes: {},
  cost: null,
  alarm_count: 0,
  worst_alarm: null,
  alarms: [],
  can_stop: false,
  can_resume: false,
  can_clone: true,
  can_delete: true,
}

function show(jobs: object[], more: object = {}) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      ...['job', 'model', 'dataset', 'sweep'].map((name) => ({
        path: `/${name}/:id`,
        name,
        component: { template: '' },
      })),
      { path: '/jobs', name: 'jobs', component: { template: '' } },
    ],
  })
  const props = {
    jobs: jobs as Job[],
    columns: COLUMNS,
    sort: 'created',
    isRising: false,
    selected: new Set(),
    sparks: new Map(),
    busyId: null,
    titleOf: () => 'SFT',
    recipeTitle: (id: string) => id.toUpperCase(),
    ...more,
  }
  return mount(JobTable, props, (app) => app.use(router))
}

describe('the table of jobs', () => {
  it('says why a job failed in its row', () => {
    const { root, end } = show([
      {
        ...EMPTY,
        state: 'failed',
        failure: { reason: 'The loss is NaN.', cause: null, exit_code: 1, hint: null, last_lines: [] },
      },
    ])

    expect(root.querySelector('[data-test=row-failure]')?.textContent).toBe('The loss is NaN.')
    end()
  })

  it('has the group of a job, which leads to all of its jobs', () => {
    const { root, end } = show([
      { ...EMPTY, group: 'seeds' },
      { ...EMPTY, id: 'job_b' },
    ])

    expect(
      [...root.querySelectorAll('[data-test=group-cell]')].map((link) => [link.textContent, link.getAttribute('href')]),
    ).toEqual([['seeds', '/jobs?kind=all&group=seeds']])
    end()
  })

  it('has last and best of the metric with its name and step', () => {
    const { root, end } = show([
      { ...EMPTY, metric: { key: 'val/loss', mode: 'min', last: 2.5, last_step: 9, best: 0.5, best_step: 3 } },
    ])

    expect(root.querySelector('[data-column=metricLast]')?.textContent).toMatch(/2\.5.*loss/is)
    expect(root.querySelector('[data-column=metricBest]')?.textContent).toMatch(/0\.5.*3/s)
    end()
  })

  it('has a heading with a count for each recipe where it is grouped, and none otherwise', () => {
    const jobs = [EMPTY, { ...EMPTY, id: 'job_b' }, { ...EMPTY, id: 'job_c', recipe: 'dpo' }]
    const grouped = show(jobs, { grouping: 'recipe', groupCounts: new Map([['sft', 80]]) })

    expect(
      [...grouped.root.querySelectorAll('[data-test=group-heading]')].map((row) =>
        row.textContent?.replace(/\s+/g, ' ').trim(),
      ),
    ).toEqual(['SFT 2 of 80 jobs', 'DPO 1 job'])
    expect(grouped.root.querySelectorAll('[data-job]')).toHaveLength(3)
    grouped.end()
    const inSweeps = show([{ ...EMPTY, sweep: { id: 'swp_a', name: 'rates' } }, EMPTY], {
      grouping: 'sweep',
    })
    expect(
      [...inSweeps.root.querySelectorAll('[data-test=group-heading]')].map((row) =>
        row.textContent?.replace(/\s+/g, ' ').trim(),
      ),
    ).toEqual(['rates 1 job', 'No value: Sweep 1 job'])
    inSweeps.end()
    const gone = show([{ ...EMPTY, model: { id: 'mdl_gone', name: null } }], { grouping: 'model' })
    expect(gone.root.querySelector('[data-test=group-heading]')?.textContent).toContain('deleted')
    gone.end()
    const plain = show(jobs, { sort: 'recipe' })
    expect(plain.root.querySelector('[data-test=group-heading]')).toBeNull()
    plain.end()
  })

  it('shows how far the metric is from the baseline, and marks the baseline', () => {
    const metric = { key: 'val/loss', mode: 'min', last: 2, last_step: 9, best: 2, best_step: 3 }
    const baseline = { ...EMPTY, metric }
    const { root, end } = show([baseline, { ...EMPTY, id: 'job_b', metric: { ...metric, last: 1.5, best: 2.5 } }], {
      baseline,
    })

    const texts = (column: string) =>
      [...root.querySelectorAll(`[data-column=${column}] [data-test=difference]`)].map((cell) => cell.textContent)
    expect(texts('metricLast')).toEqual(['−25.0%better than first'])
    expect(texts('metricBest')).toEqual(['+25.0%worse than first'])
    expect(root.querySelector('[data-job=job_a] [data-test=is-baseline]')).not.toBeNull()
    expect(root.querySelectorAll('[data-test=is-baseline]')).toHaveLength(1)
    end()
  })

  it('keeps the baseline on top, also where a filter has left it out', () => {
    const metric = { key: 'val/loss', mode: 'min', last: 2, last_step: 9, best: 2, best_step: 3 }
    const other = { ...EMPTY, id: 'job_b', metric }
    for (const jobs of [[other], [other, { ...EMPTY, metric }]]) {
      const { root, end } = show(jobs, { baseline: { ...EMPTY, metric } })

      expect([...root.querySelectorAll<HTMLElement>('[data-job]')].map((row) => row.dataset.job)).toEqual([
        'job_a',
        'job_b',
      ])
      expect(root.querySelector('[data-test=pinned-baseline] [data-job=job_a]')).not.toBeNull()
      end()
    }
  })

  it('has no heading over the baseline alone, which is on top', () => {
    const jobs = [EMPTY, { ...EMPTY, id: 'job_c', recipe: 'dpo' }]
    const { root, end } = show(jobs, { grouping: 'recipe', baseline: EMPTY })

    expect(
      [...root.querySelectorAll('[data-test=group-heading]')].map((row) =>
        row.textContent?.replace(/\s+/g, ' ').trim(),
      ),
    ).toEqual(['DPO 1 job'])
    end()
  })

  it('names the metric under its best value where that is the only one', () => {
    const metric = { key: 'val/loss', mode: 'min', last: 2, last_step: 9, best: 2, best_step: 3 }
    const { root, end } = show([{ ...EMPTY, metric }], { columns: ['metricBest'] })

    expect(root.querySelector('[data-column=metricBest]')?.textContent).toMatch(/validation loss · step 3/i)
    end()
  })

  it('shows it in a column of a chosen metric, too', () => {
    const column = 'metrics.best.val/loss'
    const run = (id: string, value: number) => ({
      ...EMPTY,
      id,
      fields: { [column]: value },
      field_modes: { [column]: 'min' },
    })
    const baseline = run('job_a', 2)
    const { root, end } = show([baseline, run('job_b', 1)], { baseline, columns: [column] })

    expect([...root.querySelectorAll('[data-test=difference]')].map((cell) => cell.textContent)).toEqual([
      '−50.0%better than first',
    ])
    end()
  })

  it('has a column for each chosen parameter and metric, which sorts', () => {
    const asked: string[] = []
    const columns = ['parameters.learning_rate', 'parameters.freeze', 'metrics.at.100.val/loss']
    const fields = { 'parameters.learning_rate': 0.00002, 'parameters.freeze': false, 'metrics.at.100.val/loss': null }
    const { root, end } = show([{ ...EMPTY, fields }], { columns, onSort: (sort: string) => asked.push(sort) })

    expect([...root.querySelectorAll('[data-sort]')].slice(2).map((head) => head.textContent)).toEqual([
      'learning_rate',
      'freeze',
      'Validation loss · step 100',
    ])
    expect(columns.map((column) => root.querySelector(`[data-column="${column}"]`)?.textContent)).toEqual([
      '2e-5',
      'no',
      '—',
    ])
    root.querySelector<HTMLElement>('[data-sort="parameters.learning_rate"]')?.click()
    expect(asked).toEqual(['parameters.learning_rate'])
    end()
  })

  it('says what a job cost, and nothing of one that cost nothing', () => {
    const { root, end } = show([
      { ...EMPTY, cost: { amount: 12.5, currency: 'EUR' } },
      { ...EMPTY, id: 'job_b' },
      { ...EMPTY, id: 'job_c', cost: { amount: 0.00123, currency: 'EUR' } },
    ])

    expect([...root.querySelectorAll('[data-job] [data-column=cost]')].map((cell) => cell.textContent)).toEqual([
      '€12.50',
      '—',
      '€0.0012',
    ])
    end()
  })

  it('sorts by its heads and says by which', () => {
    const asked: string[] = []
    const { root, end } = show([EMPTY], { sort: 'name', isRising: true, onSort: (sort: string) => asked.push(sort) })

    for (const sort of ['name', 'starred', 'metric_best', 'created'])
      root.querySelector<HTMLElement>(`[data-sort=${sort}]`)?.click()

    expect(asked).toEqual(['name', 'starred', 'metric_best', 'created'])
    expect([...root.querySelectorAll('th[aria-sort]')].map((head) => head.getAttribute('aria-sort'))).toEqual([
      'ascending',
    ])
    end()
  })

  it('stars and selects a job, and filters by its tag', () => {
    const heard: unknown[] = []
    const { root, end } = show([EMPTY], {
      onStar: (job: Job, on: boolean) => heard.push([job.id, on]),
      onSelect: (ids: string[], on: boolean) => heard.push([ids, on]),
      onTag: (tag: string) => heard.push(tag),
    })

    root.querySelector<HTMLElement>('[data-test=star]')?.click()
    root.querySelector<HTMLElement>('[data-test=select]')?.click()
    root.querySelector<HTMLElement>('[data-column=tags] [role=button]')?.click()

    expect(heard).toEqual([['job_a', true], [['job_a'], true], 'sweep'])
    end()
  })
})
