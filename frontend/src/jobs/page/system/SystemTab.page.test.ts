import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h } from 'vue'

import { i18n } from '@/i18n'
import { mount } from '@/testing/withSetup'

import SystemTab from './SystemTab.vue'

const answers = vi.hoisted(() => ({ system: {} as unknown, processes: [] as unknown[] }))
vi.mock('@/api/client', () => ({
  api: { GET: (path: string) => (path.endsWith('processes') ? answers.processes : answers.system) },
  unwrap: (answer: unknown) => Promise.resolve(answer),
}))
vi.mock('@/charts/MetricChart.vue', () => ({
  __esModule: true,
  default: {
    props: ['title', 'lines', 'marks', 'unit', 'xAxis', 'range', 'summary'],
    setup: (props: Record<string, unknown>) => () => h('figure', { 'data-drawn': JSON.stringify(props) }),
  },
}))

const at = (second: number) => new Date(second * 1000).toISOString()
const SYSTEM = {
  since: at(0),
  until: at(60),
  stretch_s: 10,
  nodes: [
    {
      node: 'alpha',
      at: [at(0), at(10), at(20)],
      figures: {
        cpu_percent: [10, 20, 30],
        memory_used_bytes: [2 ** 30, 2 ** 30, 2 ** 31],
        memory_total_bytes: [2 ** 32, 2 ** 32, 2 ** 32],
      },
    },
    { node: 'beta', at: [at(0)], figures: { cpu_percent: [99] } },
  ],
  attempts: [
    { number: 1, started_at: at(0), finished_at: at(12), first_step: 1 },
    { number: 2, started_at: at(14), finished_at: null, first_step: 3 },
  ],
  step_times: { steps: [1, 2, 3, 4], at: [5, 11, 15, 25].map(at), attempts: [1, 1, 2, 2] },
}

interface Chart {
  title: string
  lines: { label: string; curve: { steps: number[]; values: number[] } }[]
  marks: { step: number; label: string }[]
  unit: string
  xAxis: string
  range: [number, number | null]
  summary: string
}

async function show(query = '') {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { template: '' } },
      { path: '/jobs/:id', name: 'job', component: { template: '' } },
    ],
  })
  await router.push(`/${query}`)
  const shown = mount(SystemTab, { job: { id: 'job_a', name: 'a run', state: 'succeeded' } }, (app) => app.use(router))
  await vi.waitFor(() => {
    if (shown.root.querySelector('figure, .empty') === null) throw new Error('not read yet')
  })
  const charts = [...shown.root.querySelectorAll('figure')].map(
    (figure) => JSON.parse(figure.dataset.drawn ?? '{}') as Chart,
  )
  return { ...shown, charts }
}

describe('the machines of a run', () => {
  afterEach(() => {
    i18n.global.locale.value = 'en'
  })

  it('are drawn over time, with units, what there is at most and where attempts begin and end', async () => {
    answers.system = SYSTEM
    const { charts, end } = await show()

    expect(charts.map((chart) => [chart.title, chart.unit, chart.range])).toEqual([
      ['CPU', '%', [0, 100]],
      ['Memory', 'GiB', [0, 4]],
    ])
    expect(charts[1]?.lines[0]?.curve).toEqual({ steps: [0, 10_000, 20_000], values: [1, 1, 2] })
    expect(charts[0]?.marks.map((mark) => [mark.step, mark.label])).toEqual([
      [0, 'Attempt 1 starts'],
      [12_000, 'Attempt 1 ends'],
      [14_000, 'Attempt 2 starts'],
    ])
    expect(charts[0]?.summary).toContain('CPU: mean 20 %, highest 30 %')
    end()
  })

  it('are drawn by step where a step ran, with the step at which an attempt went on', async () => {
    answers.system = SYSTEM
    const { charts, end } = await show('?by=step')

    expect(charts[0]?.xAxis).toBe('step')
    expect(charts[0]?.lines[0]?.curve).toEqual({ steps: [1 + 5 / 6, 3.5], values: [20, 30] })
    expect(charts[0]?.marks.map((mark) => [mark.step, mark.label])).toEqual([[3, 'Attempt 2 starts']])
    end()
  })

  it('are those of the node in the address', async () => {
    answers.system = SYSTEM
    const { charts, end } = await show('?node=beta')

    expect(charts.map((chart) => chart.lines[0]?.curve.values)).toEqual([[99]])
    end()
  })

  it.each([
    ['en', 'The job hasn’t started yet.'],
    ['zh', '任务尚未开始。'],
  ] as const)('are none before the run, in %s', async (locale, text) => {
    i18n.global.locale.value = locale
    answers.system = {
      ...SYSTEM,
      since: null,
      until: null,
      nodes: [],
      attempts: [],
      step_times: { steps: [], at: [], attempts: [] },
    }
    const { root, end } = await show()

    expect(root.textContent).toContain(text)
    end()
  })
})
