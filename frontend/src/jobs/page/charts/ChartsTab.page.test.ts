import { createPinia } from 'pinia'
import { NMessageProvider } from 'naive-ui'
import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick, ref } from 'vue'

import { drawLine, type ChartLine, type XAxis } from '@/charts/lines'
import { mount } from '@/testing/withSetup'
import { answer, answering } from '@/testing/platform'

import { createLiveClock } from '../../live/liveClock'
import ChartsTab from './ChartsTab.vue'

interface Drawn {
  lines: readonly ChartLine[]
  smoothing: number
  xAxis: XAxis
  zoomedTo: [number, number] | null
  onZoom: (range: [number, number] | null) => void
}

const drawn = vi.hoisted(() => new Map<string, unknown>())
vi.mock('@/charts/MetricChart.vue', () => ({
  __esModule: true,
  default: {
    inheritAttrs: false,
    props: ['title', 'lines', 'smoothing', 'unit', 'xAxis', 'zoomedTo', 'onZoom'],
    setup: (
      props: Record<string, unknown>,
      { attrs, slots }: { attrs: Record<string, unknown>; slots: Record<string, (given: unknown) => unknown> },
    ) => {
      return () => {
        drawn.set(String(attrs['data-metric']), { ...props })
        return h('figure', { 'data-metric': attrs['data-metric'] }, [slots.pinned?.({ step: 3 })] as never)
      }
    },
  },
}))

// Its menu of saved views asks for more of the page than charts do.
vi.mock('./ChartTools.vue', () => ({ __esModule: true, default: { inheritAttrs: false, render: () => null } }))

const STEPS = [1, 2, 3, 4]
const ACCURACY = 'val-core/gsm8k/acc/mean@1'

function fakeRun(keys: readonly string[]) {
  const curve = { steps: STEPS, values: [0, 1, 0, 1] }
  return {
    keyVersion: ref(1),
    curveVersion: ref(1),
    latest: new Map(keys.map((key) => [key, { step: 4, value: 1 }])),
    curves: new Map(keys.map((key) => [key, curve])),
    loadKeyNames: () => Promise.resolve(),
    loadKeys: () => Promise.resolve(),
    readPart: () => Promise.resolve(new Map()),
    clock: { read: () => null, lastStep: () => 0 },
  }
}

async function show(
  keys: readonly string[],
  query = '',
  more: Record<string, unknown> = {},
  ofRun: Record<string, unknown> = {},
) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/', component: { template: '' } }],
  })
  await router.push(`/${query}`)
  const job = {
    id: 'job_a',
    name: 'a run',
    recipe: 'grpo',
    state: 'running',
    headline_metrics: ['critic/score/mean', ACCURACY],
    evaluate: null,
    alarms: [],
    attempt: 1,
    resumes: [],
    ...more,
  }
  const run = { ...fakeRun(keys), ...ofRun }
  const page = {
    setup: () => () => h(NMessageProvider, () => h(ChartsTab, { run, job, hasRollouts: true } as never)),
  }
  const shown = mount(page, {}, (app) => app.use(router).use(createPinia()))
  await vi.waitFor(() => {
    if (shown.root.querySelector('figure') === null) throw new Error('not drawn yet')
  })
  await nextTick()
  return { ...shown, router, chart: (key: string) => drawn.get(key) as Drawn }
}

beforeEach(() => {
  drawn.clear()
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
  answering('GET', () => answer(200, { items: [] }))
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  localStorage.clear()
})

describe('curves of a job with smoothing', () => {
  it('are as measured on held-out rows, by whatever name the engine gives them', async () => {
    const { chart, end } = await show(['critic/score/mean', ACCURACY], '?smoothing=0.9')
    const smoothed = (key: string) => {
      const { lines, smoothing } = chart(key)
      return lines.map((line) => drawLine(line, 'step', smoothing, false).smoothed)[0]
    }

    expect(smoothed(ACCURACY)).toBeNull()
    expect(smoothed('critic/score/mean')).not.toBeNull()
    end()
  })

  it('lead to the responses of the rows that they were measured on', async () => {
    const { root, router, end } = await show(['critic/score/mean', ACCURACY])
    const split = (key: string) => {
      const link = root.querySelector(`[data-metric="${key}"] [data-test=behind]`)?.getAttribute('href') ?? ''
      return router.resolve(link).query.split
    }

    expect(split(ACCURACY)).toBe('validation')
    expect(split('critic/score/mean')).toBeUndefined()
    end()
  })
})

describe('charts of a run in sections', () => {
  const KEYS = [
    'critic/score/mean',
    ACCURACY,
    'actor/entropy',
    'actor/pg_loss',
    'actor/grad_norm',
    'response_length/mean',
    'perf/throughput',
    'timing_s/step',
  ]
  const names = (root: HTMLElement) =>
    [...root.querySelectorAll<HTMLElement>('[data-part]')].map((one) => one.dataset.part)
  const keysIn = (root: HTMLElement, name: string) =>
    [...root.querySelectorAll<HTMLElement>(`[data-part="${name}"] figure`)].map((one) => one.dataset.metric)

  it('stand under headings by what they measure', async () => {
    const { root, end } = await show(KEYS)

    expect(names(root)).toEqual(['reward', 'validation', 'actor', 'length', 'performance'])
    expect(keysIn(root, 'performance')).toEqual(['perf/throughput', 'timing_s/step'])
    end()
  })

  it('stay folded for the next run of the recipe, and in the address', async () => {
    const { root, router, end } = await show(KEYS)
    root.querySelector<HTMLElement>('[data-part=actor] [data-test=fold]')?.click()
    await vi.waitFor(() => {
      expect(router.currentRoute.value.query.folded).toEqual(['actor'])
      expect(keysIn(root, 'actor')).toEqual([])
    })
    end()

    const next = await show(KEYS)
    expect(keysIn(next.root, 'actor')).toEqual([])
    expect(next.root.querySelector('[data-part=actor] [data-test=fold]')?.getAttribute('aria-expanded')).toBe('false')
    next.end()
    const other = await show(KEYS, '', { recipe: 'ppo' })
    expect(keysIn(other.root, 'actor')).not.toEqual([])
    other.end()
    const saved = await show(KEYS, '?folded=')
    expect(keysIn(saved.root, 'actor')).not.toEqual([])
    saved.end()
  })

  it("have no headings in a dashboard of one's own, which has an order of its own", async () => {
    const { root, end } = await show(KEYS, `?${KEYS.map((key) => `only=${encodeURIComponent(key)}`).join('&')}`)

    expect(root.querySelectorAll('[data-part]')).toHaveLength(0)
    expect([...root.querySelectorAll('figure')].map((one) => one.dataset.metric)).toEqual(KEYS)
    end()
  })
})

describe('charts that are zoomed', () => {
  const KEYS = [
    'critic/score/mean',
    ACCURACY,
    'actor/entropy',
    'actor/pg_loss',
    'actor/grad_norm',
    'response_length/mean',
    'perf/throughput',
  ]
  const THIN = { steps: [1, 100, 200, 300, 400, 500], values: [1, 2, 3, 4, 5, 6], width: 100 }

  it('have the stretch in detail on the axis of time, also those that are unfolded or added later', async () => {
    const clock = createLiveClock()
    clock.fill({ steps: [1, 500], elapsed_s: [2, 1000], at: null, tokens: null })
    const asked: unknown[] = []
    const readPart = (keys: readonly string[], stretch: object) => {
      asked.push([keys.includes('actor/kl'), stretch])
      const part = { steps: [100, 101, 400], values: [2, 9, 5] }
      return Promise.resolve(new Map(keys.map((key) => [key, part])))
    }
    const curves = new Map([...KEYS, 'actor/kl'].map((key) => [key, THIN]))
    const latest = new Map([...KEYS, 'actor/kl'].map((key) => [key, { step: 4, value: 1 }]))
    const { root, router, chart, end } = await show(
      KEYS,
      `?axis=time&only=${KEYS.map(encodeURIComponent).join('&only=')}`,
      {},
      { clock, curves, latest, readPart },
    )
    expect(chart(ACCURACY).xAxis).toBe('time')

    // In minutes: step 200 ends after 400 seconds and step 300 after 600.
    chart(ACCURACY).onZoom([6, 11])
    await vi.waitFor(() => {
      expect(chart(ACCURACY).lines[0]?.curve.steps).toEqual([1, 100, 101, 400, 500])
    })
    expect(asked).toEqual([[false, { from: 100, to: 400 }]])
    await router.replace({ query: { ...router.currentRoute.value.query, only: [...KEYS, 'actor/kl'] } })
    await vi.waitFor(() => {
      expect(chart('actor/kl').zoomedTo).toEqual([6, 11])
      expect(asked).toEqual([
        [false, { from: 100, to: 400 }],
        [true, { from: 100, to: 400 }],
      ])
    })
    expect(root.querySelectorAll('figure')).toHaveLength(KEYS.length + 1)
    end()
  })
})

describe('charts that a pattern finds', () => {
  const KEYS = Array.from({ length: 42 }, (_, index) => `own/${String(index).padStart(2, '0')}`)

  it('are cut, which the page says', async () => {
    const { root, end } = await show(KEYS, '?match=own')

    expect(root.querySelectorAll('figure')).toHaveLength(40)
    expect(root.querySelector('[data-test=cut]')?.textContent?.trim()).toBe('Only the first 40 of 42 are charted')
    end()
  })

  it('are all there where they are fewer', async () => {
    const { root, end } = await show(KEYS.slice(0, 40), '?match=own')

    expect(root.querySelector('[data-test=cut]')).toBeNull()
    end()
  })
})
