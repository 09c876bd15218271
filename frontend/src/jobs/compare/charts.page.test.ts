import { afterEach, expect, it, vi } from 'vitest'
import { h } from 'vue'

import { drawLine, type ChartLine, type XAxis } from '@/charts/lines'
import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import ChartsPart from './ChartsPart.vue'
import { readView } from './view'

interface Drawn {
  title: string
  lines: readonly ChartLine[]
  xAxis: XAxis
  onZoom: (range: [number, number] | null) => void
}
const drawn: Drawn[] = []
vi.mock('@/charts/MetricChart.vue', () => ({
  default: {
    inheritAttrs: false,
    props: ['title', 'lines', 'xAxis', 'onZoom'],
    setup: (props: Drawn) => () => {
      drawn.push({ ...props })
      return h('figure')
    },
  },
}))

const at = (hours: number) => Date.UTC(2026, 0, 1, hours)
const JOBS = ['a', 'b'].map((name) => ({
  id: `job_${name}`,
  name,
  state: 'succeeded',
  started_at: '2026-01-01T00:00:00Z',
  finished_at: '2026-01-01T23:00:00Z',
  progress: { step: 4 },
  resumes: name === 'a' ? [{ attempt: 2, step: 2 }] : [],
  alarms: [],
}))
const CURVE = { steps: [1, 2, 3, 4], values: [4, 3, 2, 1] }

function show(query: Record<string, string>, props: Record<string, unknown> = {}) {
  drawn.length = 0
  return mount(ChartsPart, {
    found: { jobs: JOBS, metric_keys: [{ key: 'loss', run_count: 2 }], seed_groups: [['job_a', 'job_b']] },
    view: readView({ ids: 'job_a,job_b', ...query }),
    curves: new Map(JOBS.map((job) => [job.id, new Map([['loss', CURVE]])])),
    clocks: new Map(
      JOBS.map((job) => [
        job.id,
        {
          steps: [1, 2, 3, 4],
          elapsed_s: [1, 2, 3, 4],
          tokens: null,
          at: (job.name === 'a' ? [1, 2, 12, 13] : [1, 2, 3, 4]).map((hours) => new Date(at(hours)).toISOString()),
        },
      ]),
    ),
    keys: ['loss'],
    usual: ['loss'],
    looks: new Map(),
    ...props,
  })
}

function places(index: number): number[] {
  const chart = drawn.at(-1)
  const line = chart?.lines[index]
  if (chart === undefined || line === undefined) throw new Error('there is no such line')
  return drawLine(line, chart.xAxis, 0, false).raw.map(([x]) => x)
}

afterEach(() => vi.restoreAllMocks())

it('a resumed run has the time in which it stood still on the axis of the time of day, and none on that of training', () => {
  const wall = show({ x: 'wall' })
  expect([places(0), places(1)]).toEqual([[1, 2, 12, 13].map(at), [1, 2, 3, 4].map(at)])
  wall.end()

  const training = show({ x: 'time' })
  expect([places(0), places(1)]).toEqual([
    [1, 2, 3, 4],
    [1, 2, 3, 4],
  ])
  training.end()
})

it('runs that differ in the seed are drawn as the mean and deviation that the server has for them', async () => {
  const asked: unknown[] = []
  answering('GET', ({ path, query }) => {
    asked.push([path, query.groups, query.keys])
    const series = [{ key: 'loss', steps: [1, 3], means: [4, 2], deviations: [0.5, 0.25], stride: 2 }]
    return answer(200, { groups: [{ job_ids: ['job_a', 'job_b'], series }] })
  })
  const { root, end } = show({ seeds: '1' })

  await vi.waitFor(() => {
    expect(drawn.at(-1)?.lines).toMatchObject([
      {
        label: 'a (mean ± SD of 2 seeds)',
        curve: { steps: [1, 3], values: [4, 2], width: 2 },
        band: { low: [3.5, 1.75], high: [4.5, 2.25] },
        deviations: [0.5, 0.25],
      },
    ])
  })
  expect(asked).toEqual([['/api/v1/jobs/compare/means', ['job_a,job_b'], ['loss']]])
  expect(root.querySelector('[data-test=band]')?.textContent).toContain('± 1 SD')
  end()
})

it('says that means could not be read, and reads them again; until then nothing is said of bands', async () => {
  let isDown = true
  answering('GET', () => {
    if (isDown) return answer(500, { error: 'internal_error', message: 'broken', details: null })
    const series = [{ key: 'loss', steps: [1], means: [4], deviations: [0.5], stride: 1 }]
    return answer(200, { groups: [{ job_ids: ['job_a', 'job_b'], series }] })
  })
  const { root, end } = show({ seeds: '1' })
  await vi.waitFor(() => {
    expect(root.querySelector('[role=alert]')).not.toBeNull()
  })
  expect(root.querySelector('[data-test=band]')).toBeNull()

  isDown = false
  root.querySelector<HTMLElement>('[role=alert] button')?.click()
  await vi.waitFor(() => {
    expect(root.querySelector('[data-test=band]')).not.toBeNull()
  })
  expect(root.querySelector('[role=alert]')).toBeNull()
  end()
})

it('a zoomed chart draws its stretch in detail, read once for all charts', async () => {
  const long = { steps: [1, 50, 99, 150, 200], values: [1, 2, 3, 4, 5], width: 50 }
  const asked: unknown[] = []
  answering('GET', ({ query }) => {
    asked.push([query.from_step, query.to_step, query.keys])
    const steps = [50, 51, 52, 149, 150]
    const series = { key: 'loss', steps, values: steps, non_finite: [], total_points: 5, is_downsampled: false }
    return answer(200, { runs: [{ job_id: 'job_a', series: [{ ...series, stretch_steps: 1 }] }] })
  })
  const { end } = show({}, { curves: new Map(JOBS.map((job) => [job.id, new Map([['loss', long]])])) })
  const zoom = (range: [number, number] | null) => drawn.at(-1)?.onZoom(range)

  zoom([60, 120])
  zoom([60, 130])
  zoom([60, 130])
  await vi.waitFor(() => {
    expect(drawn.at(-1)?.lines[0]?.curve.steps).toEqual([1, 50, 51, 52, 149, 150, 200])
  })
  expect(drawn.at(-1)?.lines[1]?.curve.steps).toEqual(long.steps)
  expect(asked).toEqual([[50, 150, ['loss']]])

  zoom(null)
  await vi.waitFor(() => {
    expect(drawn.at(-1)?.lines[0]?.curve).toEqual(long)
  })
  end()
})

it('a run that did not report what the axis takes is named', () => {
  const { root, end } = show({ x: 'tokens' })

  expect(root.querySelector('.note')?.textContent).toContain('a, b')
  expect(drawn.at(-1)?.lines).toEqual([])
  end()
})
