import { createMemoryHistory, createRouter } from 'vue-router'
import type { Component } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { i18n } from '@/i18n'
import { answer, answering } from '@/testing/platform'
import { RECIPE_NAMES } from '@/testing/recipes'
import { mount } from '@/testing/withSetup'

import AlarmList from './AlarmList.vue'
import EndpointsLine from './EndpointsLine.vue'
import FailureList from './FailureList.vue'
import FinishedList from './FinishedList.vue'
import HealthLine from './HealthLine.vue'
import QueueList from './QueueList.vue'
import RunningJob from './RunningJob.vue'
import ScoreCard from './ScoreCard.vue'

const EVALUATION = {
  id: 'ev_aaaaaaaaaaaa',
  name: 'tiny on GSM8K',
  state: 'succeeded',
  target: { kind: 'model', name: 'tiny', model: { id: 'mdl_aaaaaaaaaaaa', name: 'tiny' }, job: null, step: null },
  datasets: {},
  created_at: '2026-01-01T00:00:00Z',
  finished_at: '2026-01-01T00:10:00Z',
  results: [
    {
      label: 'gsm8k',
      benchmark: 'gsm8k',
      headline: 'strict',
      scores: [
        { metric: 'flexible', value: 0.6, low: null, high: null, n: 100, method: 'none' },
        { metric: 'strict', value: 0.5, low: 0.4, high: 0.6, n: 100, method: 'wilson' },
      ],
    },
  ],
}
const lists = {
  queue: {} as unknown,
  evaluations: { items: [] as unknown[] },
  endpoints: [] as unknown[],
  asked: [] as unknown[],
}

function job(name: string, more: object = {}) {
  return {
    id: `job_${name.padEnd(12, 'a')}`,
    name,
    kind: 'train',
    state: 'succeeded',
    recipe: 'sft',
    finished_at: '2026-01-01T00:00:00Z',
    priority: 0,
    queue_position: null,
    metric: { key: 'val/loss', mode: 'min', last: 2, last_step: 9, best: 1, best_step: 5 },
    ...more,
  }
}

function show(component: Component, props: Record<string, unknown>) {
  const page = { template: '<p />' }
  const names = ['job', 'jobs', 'jobQueue', 'compareJobs', 'evaluation', 'evaluations', 'playground']
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: page },
      ...names.map((name) => ({ path: `/${name}/:id?`, name, component: page })),
      { path: '/jobs/:id', component: page },
    ],
  })
  return mount(component, props, (app) => app.use(router))
}

const text = (root: Element | null) => (root?.textContent ?? '').replace(/\s+/g, ' ').trim()

beforeEach(() => {
  lists.asked = []
  answering('GET', ({ path, query }) => {
    if (path.endsWith('/jobs/queue')) return answer(200, lists.queue)
    if (path.endsWith('/evaluations')) return answer(200, lists.evaluations)
    if (path.endsWith('/endpoints')) {
      lists.asked.push(query.is_up)
      return answer(200, { items: lists.endpoints, next_cursor: null })
    }
    if (path.endsWith('/recipes/names')) return answer(200, RECIPE_NAMES)
    throw new Error(`not asked for in a test: ${path}`)
  })
})

afterEach(() => {
  i18n.global.locale.value = 'en'
  vi.restoreAllMocks()
})

describe('finished trainings', () => {
  it('show the last value, and the difference to the job that they are copies of', () => {
    const parent = job('parent', {
      metric: { key: 'val/loss', mode: 'min', last: 2.5, last_step: 9, best: 1, best_step: 5 },
    })
    const { root, end } = show(FinishedList, {
      finished: [
        { job: job('copy'), parent },
        { job: job('first'), parent: null },
        { job: job('bare', { metric: null }), parent },
      ],
    })
    const [copy, first, bare] = root.querySelectorAll('[data-finished]')

    expect(text(copy?.querySelector('.value') ?? null)).toMatch(/2$/)
    expect(text(copy?.querySelector('[data-test=difference]') ?? null)).toContain('−20.0%')
    expect(copy?.querySelector('[data-test=difference]')?.getAttribute('title')).toBe('better than parent')
    expect(text(copy ?? null)).toContain('vs parent')
    expect(first?.querySelector('[data-test=difference]')).toBeNull()
    expect(bare?.querySelector('.metric')).toBeNull()
    end()
  })

  it('say when there are none', () => {
    const { root, end } = show(FinishedList, { finished: [] })
    expect(text(root)).toBe('No training has finished yet.')
    end()
  })
})

describe('jobs that run or failed', () => {
  it('show the title of the recipe and not its id', async () => {
    const running = show(RunningJob, {
      job: job('now', {
        state: 'running',
        started_at: null,
        eta_s: null,
        progress: { step: 1, total_steps: 2, fraction: 0.5, phase: null },
      }),
      now: '2026-01-01T00:00:00Z',
    })
    const failed = show(FailureList, {
      jobs: [job('broken', { state: 'failed', failure: { reason: 'No memory.', cause: null, hint: null } })],
    })

    await vi.waitFor(() => {
      expect(text(running.root.querySelector('.recipe'))).toBe('Supervised fine-tuning')
    })
    expect(text(failed.root.querySelector('.facts'))).toContain('Supervised fine-tuning')
    running.end()
    failed.end()
  })
})

describe('a job that was resumed', () => {
  it('counts the time of all its attempts', () => {
    const resumed = job('again', {
      state: 'running',
      started_at: '2026-01-01T00:00:00Z',
      finished_at: null,
      earlier_run_time_s: 3 * 3600,
      eta_s: null,
      progress: { step: 1, total_steps: 2, fraction: 0.5, phase: null },
    })
    const { root, end } = show(RunningJob, { job: resumed, now: '2026-01-01T00:01:00Z' })

    expect(text(root.querySelector('.facts'))).toContain('running for 3 h 1 min')
    end()
  })
})

describe('the queue of the overview', () => {
  it('names the expected start of each job', async () => {
    const jobs = ['one', 'two'].map((name, at) => job(name, { state: 'queued', queue_position: at + 1 }))
    lists.queue = {
      items: [
        { job: jobs[0], start: { seconds: 600, unknown: null } },
        { job: jobs[1], start: { seconds: null, unknown: 'one' } },
      ],
      total: 2,
      used_slots: 1,
      total_slots: 1,
    }
    const { root, end } = show(QueueList, { jobs, slots: { used: 1, total: 1, price: null } })

    await vi.waitFor(() => {
      expect(root.querySelectorAll('[data-test=start]')).toHaveLength(2)
    })
    expect([...root.querySelectorAll('[data-test=start]')].map((each) => text(each))).toEqual([
      'starts in about 10 min',
      'start unknown: no estimate for “one”',
    ])
    end()
  })
})

describe('the latest scores', () => {
  it.each([
    ['en', '95% CI 40.0% – 60.0%'],
    ['zh', '95% 置信区间 40.0% – 60.0%'],
  ] as const)('show the main score with its interval, in %s', async (locale, interval) => {
    i18n.global.locale.value = locale
    lists.evaluations = { items: [EVALUATION] }
    const { root, end } = show(ScoreCard, {})

    await vi.waitFor(() => {
      expect(text(root.querySelector('[data-evaluation]'))).toContain(interval)
    })
    expect(text(root.querySelector('.score strong'))).toBe('50.0%')
    end()
  })

  it('say when there are none', async () => {
    lists.evaluations = { items: [] }
    const { root, end } = show(ScoreCard, {})
    await vi.waitFor(() => {
      expect(text(root)).toContain('No evaluation has finished yet.')
    })
    end()
  })
})

describe('alarms of the overview', () => {
  it('lead to the job, in the language of the page', () => {
    i18n.global.locale.value = 'zh'
    const alarm = {
      code: 'loss_not_finite',
      severity: 'critical',
      last_step: 1200,
      title: { en: 'The loss is NaN', zh: '损失不是有限值' },
      raised_at: '2026-01-01T00:00:00Z',
    }
    const { root, end } = show(AlarmList, { alarms: [{ job: { id: 'job_aaaaaaaaaaaa', name: 'broken' }, alarm }] })

    expect(text(root.querySelector('[data-code=loss_not_finite]'))).toContain('损失不是有限值')
    expect(root.querySelector('a')?.getAttribute('href')).toBe('/job/job_aaaaaaaaaaaa')
    end()
  })
})

describe('what is loaded', () => {
  const load = { generated_tokens_per_s: 20.5, waiting: 1 }

  it('is one line that leads to the list', async () => {
    lists.endpoints = [
      { state: 'ready', load },
      { state: 'ready', load: { ...load, generated_tokens_per_s: 21 } },
      { state: 'ready', load: null },
      { state: 'starting', load: null },
    ]
    const { root, end } = show(EndpointsLine, {})
    await vi.waitFor(() => {
      expect(text(root)).toBe('Loaded models3 ready · 1 starting · 41.5 tokens/s · 2 requests waiting')
    })
    expect(root.querySelector('a')?.getAttribute('href')).toBe('/playground#endpoints')
    end()
  })

  it('is not mentioned where that is nothing', async () => {
    lists.endpoints = [{ state: 'ready', load }]
    const { root, end } = show(EndpointsLine, {})
    const line = () => root.querySelector('[data-test=endpoints]')
    await vi.waitFor(() => {
      expect(line()).not.toBeNull()
    })

    lists.endpoints = []
    document.dispatchEvent(new Event('visibilitychange'))
    await vi.waitFor(() => {
      expect(line()).toBeNull()
    })
    // Only what is loaded was asked for.
    expect(lists.asked).toEqual([true, true])
    end()
  })
})

describe('the health of the platform', () => {
  const data = {
    health: 'degraded',
    slots: { used: 1, total: 2, price: null },
    versions: {},
    components: [
      { name: 'database', health: 'ok', message: 'Connected.', age_s: 1, services: [] },
      { name: 'disk', health: 'degraded', message: 'Little space.', age_s: 1, services: [] },
    ],
    resources: {
      cpu_percent: 12,
      cpu_count: 2,
      load_1m: 1,
      memory_used_bytes: 1,
      memory_total_bytes: 4,
      disk_free_bytes: 1024 ** 3,
      disk_total_bytes: 1024 ** 4,
      gpus: [],
      age_s: 1,
    },
  }

  it('is one line and names what wants attention', () => {
    const { root, end } = show(HealthLine, { data })

    expect(text(root.querySelector('.mark'))).toBe('Degraded')
    expect([...root.querySelectorAll('.fact')].map((each) => text(each))).toEqual([
      'Slots 1 of 2 busy',
      'CPU 12%',
      'Memory 25%',
      'Disk 1 GiB free',
    ])
    expect(text(root.querySelector('.problem'))).toBe('Disk: Little space.')
    expect(root.querySelector('[data-component]')).toBeNull()
    end()
  })
})
