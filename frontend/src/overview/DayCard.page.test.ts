import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { i18n } from '@/i18n'
import { mount } from '@/testing/withSetup'

import DayCard from './DayCard.vue'

const GROWING = {
  node: 'alpha',
  pid: 7,
  name: 'celery',
  job_id: 'job_aaaaaaaaaaaa',
  job_name: 'a leak',
  started_at: '2026-01-01T00:00:00Z',
  is_alive: true,
  memory_bytes: 3 * 1024 ** 3,
  peak_bytes: 3 * 1024 ** 3,
  growth_bytes: 1024 ** 3,
  growth_bytes_per_h: 512 * 1024 ** 2,
  is_growing: true,
  at: [],
  memory: [],
}
const HISTORY = {
  since: '2026-01-01T00:00:00Z',
  until: '2026-01-02T00:00:00Z',
  stretch_s: 600,
  nodes: [
    {
      node: 'alpha',
      at: ['2026-01-01T00:00:00Z', '2026-01-01T00:10:00Z'],
      figures: {
        cpu_percent: [20, 60],
        memory_used_bytes: [1, 1],
        memory_total_bytes: [4, 4],
        gpu0_utilization_percent: [null, 90],
      },
    },
  ],
}

const answers = vi.hoisted(() => ({ machines: {} as unknown, processes: [] as unknown[] }))
vi.mock('@/api/client', () => ({
  api: { GET: (path: string) => (path.endsWith('processes') ? answers.processes : answers.machines) },
  unwrap: (answer: unknown) => Promise.resolve(answer),
}))

function answer(processes: unknown[]): void {
  answers.machines = HISTORY
  answers.processes = processes
}

async function show() {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { template: '' } },
      { path: '/jobs/:id', name: 'job', component: { template: '' } },
    ],
  })
  const shown = mount(DayCard, {}, (app) => app.use(router))
  await vi.waitFor(() => {
    if (shown.root.querySelector('[data-row]') === null || shown.root.querySelectorAll('[role=status]').length > 0)
      throw new Error('not read yet')
  })
  return shown
}

describe('the last 24 hours', () => {
  afterEach(() => {
    i18n.global.locale.value = 'en'
  })

  it('show each node, and what was measured of it in words', async () => {
    answer([])
    const { root, end } = await show()

    expect([...root.querySelectorAll('[data-row]')].map((row) => row.textContent)).toEqual([
      'CPU60%',
      'Memory25%',
      'GPU 090%',
    ])
    expect(root.querySelector('[data-row=cpu] svg')?.getAttribute('aria-label')).toBe(
      'CPU: now 60%, mean 40%, highest 60%',
    )
    expect(root.textContent).toContain('No process grows.')
    end()
  })

  it.each([
    ['en', '+512 MiB/h'],
    ['zh', '+512 MiB/小时'],
  ] as const)('name a process that grows, with its job, in %s', async (locale, rate) => {
    i18n.global.locale.value = locale
    answer([GROWING])
    const { root, end } = await show()

    const row = root.querySelector('[data-test=growing]')
    expect(row?.textContent).toContain('celery')
    expect(row?.textContent).toContain(rate)
    expect(row?.querySelector('a')?.getAttribute('href')).toBe('/jobs/job_aaaaaaaaaaaa?tab=system')
    end()
  })
})
