import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import type { Job } from '../types'
import JobHeader from './JobHeader.vue'

const START = '2026-01-01T00:00:00Z'
const JOB = {
  id: 'job_a',
  name: 'resumed',
  kind: 'train',
  state: 'succeeded',
  recipe: 'sft',
  model: { id: 'mdl_a', name: 'tiny' },
  dataset: null,
  validation_dataset: null,
  tags: [],
  is_starred: false,
  attempt: 2,
  resume_step: 26,
  created_at: START,
  started_at: START,
  finished_at: '2026-01-01T00:00:10Z',
  earlier_run_time_s: 50,
  resources: { gpus: 2 },
  progress: { phase: null, step: 40, total_steps: 40, fraction: 1 },
  eta_s: null,
  queue_position: null,
  failure: null,
  sweep: null,
  group: null,
  cloned_from: null,
  export_as: null,
  report_to: null,
  priority: 0,
  can_stop: false,
  can_resume: false,
  can_clone: true,
  can_delete: true,
} as unknown as Job

function facts(price: object | null): Record<string, string> {
  const { root, end } = open(JOB, price)
  const found = Object.fromEntries(
    [...root.querySelectorAll('dl > div')].map((fact) => [
      fact.querySelector('dt')?.textContent?.trim() ?? '',
      fact.querySelector('dd')?.textContent?.trim() ?? '',
    ]),
  )
  end()
  return found
}

function open(job: Job, price: object | null = null) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', name: 'jobs', component: { template: '' } },
      { path: '/model/:id', name: 'model', component: { template: '' } },
      { path: '/playground', name: 'playground', component: { template: '' } },
      { path: '/help/:name', component: { template: '' } },
    ],
  })
  const mounted = mount(JobHeader, { job, recipeTitle: 'SFT', connection: 'closed', isBusy: false, price }, (app) =>
    app.use(router),
  )
  return { ...mounted, router }
}

describe('the head of a job', () => {
  it('parts the attempt from the step that it continued from, and counts the time of all attempts', () => {
    const found = facts(null)

    expect(found.Attempt).toBe('2 from step 26')
    expect(found.Runtime).toBe('1 min')
    expect(found.Cost).toBeUndefined()
  })

  it('says what the job cost where there is a price', () => {
    expect(facts({ per_hour: 30, currency: 'EUR' }).Cost).toBe('€1.00')
  })

  it('leads a finished training to the playground, which compares it with its base', async () => {
    const { root, router, end } = open(JOB)
    root.querySelector<HTMLElement>('[data-test=playground]')?.click()
    await vi.waitFor(() => {
      expect(router.currentRoute.value.fullPath).toBe('/playground?job=job_a')
    })
    end()

    const running = open({ ...JOB, state: 'running' })
    expect(running.root.querySelector('[data-test=playground]')).toBeNull()
    running.end()
  })

  it('links the W&B run, and warns where metrics cannot be sent', () => {
    const report = {
      wandb: { project: 'sums' },
      url: 'https://wandb.local/sums/runs/job_a',
      sent_step: 7,
      problem: null,
    }
    const { root, end } = open({ ...JOB, report_to: report } as unknown as Job)
    expect(root.querySelector('[data-test=report-to] a')?.getAttribute('href')).toBe(report.url)
    expect(root.querySelector('[data-test=report-to]')?.textContent).toContain('sent up to step 7')
    end()

    const failing = open({ ...JOB, report_to: { ...report, problem: 'no route to host' } } as unknown as Job)
    expect(failing.root.querySelector('[data-test=report-to] .problem')?.textContent).toContain('no route to host')
    failing.end()
  })
})
