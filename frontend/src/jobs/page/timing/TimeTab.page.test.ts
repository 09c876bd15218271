import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { i18n } from '@/i18n'
import { mount } from '@/testing/withSetup'
import { light } from '@/theme/palettes'

import TimeTab from './TimeTab.vue'

const answers = vi.hoisted(() => ({ timing: {} as unknown, timeline: null as unknown }))
vi.mock('@/theme/store', () => ({ useThemeStore: () => ({ palette: light }) }))
vi.mock('@/api/client', () => ({
  api: { GET: (path: string) => (path.endsWith('timeline') ? answers.timeline : answers.timing) },
  unwrap: (answer: unknown) => Promise.resolve(answer),
}))

const phase = (name: string, group: string, seconds: number[], share: number, inStep = true) => ({
  phase: name,
  group,
  in_step: inStep,
  seconds,
  total_s: seconds.reduce((a, b) => a + b),
  share,
})
const LIMIT = {
  group: 'generation',
  share: 0.61,
  seconds: 6.1,
  steps: 2,
  phases: ['gen'],
  longest_response: 4.2,
  tail_share: 0.5,
  queued_share: null,
  kv_cache_use: null,
  workers_busy: null,
  engines_busy: null,
}
const TIMING = {
  first_steps: [1, 2],
  last_steps: [1, 2],
  step_s: [8, 8],
  steps: 2,
  bottleneck: LIMIT,
  timeline_steps: [1, 2],
  phases: [
    phase('gen', 'generation', [6, 6.2], 0.61),
    phase('update_actor', 'update', [2, 1.8], 0.19),
    phase('testing', 'validation', [0, 4], 0.2, false),
  ],
}
const TIMELINE = {
  step: 2,
  attempt: 1,
  started_at: '2026-01-02T03:04:05Z',
  duration_s: 8,
  response_count: 2,
  lanes: [
    {
      name: 'trainer',
      spans: [
        { phase: 'gen', start_s: 0, end_s: 6 },
        { phase: 'update_actor', start_s: 6, end_s: 8 },
      ],
    },
  ],
  responses: [
    { group: 'a', start_s: 0, end_s: 2, tokens: 12 },
    { group: 'a', start_s: 0, end_s: 6, tokens: 90 },
  ],
  engines: [],
}
const LOAD = { name: 'engine 0', at_s: [0, 2, 6], running: [8, 6, 0], waiting: [3, 0, 0], kv_use: [0.42, 0.3, 0] }

async function show(query = '', state = 'succeeded') {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  await router.push(`/${query}`)
  const shown = mount(TimeTab, { job: { id: 'job_a', name: 'a run', state } }, (app) => app.use(router))
  await vi.waitFor(() => {
    if (shown.root.querySelector('[role=status]') !== null || shown.root.textContent === '')
      throw new Error('not read yet')
  })
  return { ...shown, router }
}

describe('the time of a run', () => {
  afterEach(() => {
    i18n.global.locale.value = 'en'
  })

  it('is said in a sentence with the figures that it rests on', async () => {
    answers.timing = TIMING
    answers.timeline = TIMELINE
    const { root, end } = await show()

    const said = root.querySelector('[data-test=limit]')?.textContent ?? ''
    expect(said).toContain('Generation takes 61% of the time: 6.1 s per step on average, over 2 measured steps.')
    expect(said).toContain('The longest response takes 4.2x as long as the median.')
    expect(said).toContain('Lower max_response_length')
    end()
  })

  it('has a stack and a row for every phase, and leads to the lanes of a step', async () => {
    answers.timing = TIMING
    answers.timeline = TIMELINE
    const { root, router, end } = await show()

    expect([...root.querySelectorAll('[data-phase]')].map((row) => row.textContent)).toEqual([
      'Generation 6.1 s61%',
      'Policy update 1.9 s19%',
      'Validation beside the steps2 s20%',
    ])
    root.querySelectorAll('.pick')[1]?.dispatchEvent(new MouseEvent('click', { bubbles: true }))
    await vi.waitFor(() => {
      expect(router.currentRoute.value.query.step).toBe('2')
    })
    end()
  })

  it('of one step is shown in lanes, with the life of its responses', async () => {
    answers.timing = TIMING
    answers.timeline = TIMELINE
    const { root, end } = await show('?step=7')

    const lanes = root.querySelector('[data-test=lanes]')
    expect([...(lanes?.querySelectorAll('.span') ?? [])].map((one) => one.textContent)).toEqual([
      'Generation: 0–6 s (6 s)',
      'Policy update: 6–8 s (2 s)',
    ])
    expect(lanes?.querySelector('.progress')?.getAttribute('aria-label')).toBe(
      'Up to 2 responses at a time; the last one ended after 6 s.',
    )
    expect(lanes?.querySelectorAll('.life').length).toBe(2)
    expect(lanes?.textContent).toContain('No lanes were kept of step 7')
    end()
  })

  it('of several ranks has a lane for each, and engines show their requests and KV cache', async () => {
    answers.timing = { ...TIMING, bottleneck: { ...LIMIT, queued_share: 0.4, kv_cache_use: 0.98 } }
    answers.timeline = {
      ...TIMELINE,
      lanes: [0, 1].map((rank) => ({ ...TIMELINE.lanes[0], name: `rank ${rank}` })),
      engines: [LOAD],
    }
    const { root, end } = await show()

    expect([...root.querySelectorAll('.track')].map((lane) => lane.getAttribute('aria-label'))).toEqual([
      'Rank 0',
      'Rank 1',
    ])
    const drawn = [...root.querySelectorAll('[data-test=engine] svg')]
    expect(drawn.map((one) => one.getAttribute('aria-label'))).toEqual([
      'Engine 0: max. 8 running, 3 waiting',
      'KV cache: max. 42%',
    ])
    expect(drawn[0]?.querySelector('.waiting')?.getAttribute('d')).toBe(
      'M0.000 40.00H0.000V25.00H25.000V40.00H75.000V40.00H100.000V40.00Z',
    )
    expect(root.querySelector('[data-test=limit]')?.textContent).toContain(
      'Requests wait in the engine’s queue 40% of its time, and its KV cache is up to 98% full.',
    )
    expect(root.querySelector('[data-test=limit]')?.textContent).toContain('max_num_seqs')
    end()
  })

  it('of every process is in a lane of its node, read with the keyboard and in a table', async () => {
    const span = (phase: string, from: number, to: number) => ({ phase, start_s: from, end_s: to })
    const lane = (name: string, node: string, spans: unknown[], gpus: string[] = []) => ({
      name,
      spans,
      place: { node, pid: 7, gpus },
    })
    answers.timing = { ...TIMING, bottleneck: { ...LIMIT, workers_busy: 0.25, engines_busy: 0.6 } }
    answers.timeline = {
      ...TIMELINE,
      lane_count: 5,
      engines: [LOAD],
      groups: {
        gen: 'generation',
        generate: 'generation',
        log_prob: 'log_probs',
        update_actor: 'update',
        queued: 'waiting',
        reward: 'scoring',
      },
      lanes: [
        lane('trainer', 'node-a', [span('gen', 0, 6), span('update_actor', 6, 8)]),
        lane('worker 0', 'node-a', [span('log_prob', 6, 6.5), span('update_actor', 6.5, 8)], ['0', '1']),
        lane('engine 0', 'node-b', [span('generate', 0, 6)]),
        lane('reward 0', 'node-b', []),
      ],
      responses: [
        {
          group: 'a',
          start_s: 0,
          end_s: 5,
          tokens: 90,
          parts: [span('queued', 0, 1), span('generate', 1, 5), span('reward', 5, 5.5)],
        },
      ],
      response_count: 1,
    }
    const { root, end } = await show()

    expect([...root.querySelectorAll('h3')].map((one) => one.textContent)).toEqual(['Node node-a', 'Node node-b'])
    expect(
      [...root.querySelectorAll('.lane > .name')]
        .map((one) => one.textContent?.trim().replace(/\s+/g, ' '))
        .slice(0, 4),
    ).toEqual(['Trainer', 'Worker 0 GPUs 0, 1 25% at work', 'Engine 0 75% at work', 'Rewards 0 0% at work'])
    expect(root.textContent).toContain('4 of 5 processes.')
    expect(root.querySelector('[data-test=limit]')?.textContent).toContain(
      'the training processes are at work 25% of the time, the rollout engines 60%',
    )

    const track = root.querySelector<HTMLElement>('[data-lane="worker 0"]')
    track?.dispatchEvent(new FocusEvent('focus'))
    track?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }))
    await vi.waitFor(() => {
      expect(root.querySelector('[data-test=pointed]')?.textContent).toBe('Worker 0 · Policy update: 6.5–8 s (1.5 s)')
    })

    const rows = [...root.querySelectorAll('[data-test=lane-table] tbody tr')].map((row) =>
      [...row.children].map((cell) => cell.textContent),
    )
    expect(rows[3]).toEqual(['Worker 0', 'node-a, GPUs 0, 1', '7', 'Log-probabilities', '0.5 s', '6%'])
    expect(rows[5]).toEqual(['Waiting', '6 s', '75%'])
    expect(root.querySelector('.responses li')?.getAttribute('title')).toBe(
      '0–5 s, 90 tokens\nWaiting for the engine: 0–1 s (1 s)\nGenerating: 1–5 s (4 s)\nRewards: 5–5.5 s (0.5 s)',
    )
    expect(root.querySelectorAll('.part').length).toBe(3)
    end()
  })

  it('of runs that kept no lanes has the phases alone', async () => {
    answers.timing = { ...TIMING, timeline_steps: [] }
    answers.timeline = null
    const { root, end } = await show()

    expect(root.textContent).toContain('No lanes kept')
    expect(root.querySelector('[data-test=phase-stack]')).not.toBeNull()
    end()
  })

  it.each([
    ['en', 'running', 'They appear after the first step.'],
    ['zh', 'succeeded', '本次运行没有报告耗时。'],
  ] as const)('is nothing where nothing was measured (%s, %s)', async (locale, state, text) => {
    i18n.global.locale.value = locale
    answers.timing = { ...TIMING, phases: [], bottleneck: null, first_steps: [] }
    answers.timeline = null
    const { root, end } = await show('', state)

    expect(root.textContent).toContain(text)
    end()
  })
})
