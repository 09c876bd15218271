import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import EvaluationsPart from './EvaluationsPart.vue'

const JOBS = ['base', 'new', 'other'].map((name) => ({ id: `job_${name}`, name }))
const SCORE = { metric: 'accuracy', value: 0.5, stderr: null, low: null, high: null, method: 'none', n: 10 }
const COMPARED = {
  label: 'gsm8k',
  benchmark: 'gsm8k',
  dataset: null,
  metric: 'accuracy',
  a: SCORE,
  b: SCORE,
  difference: 0.1,
  low: 0.01,
  high: 0.19,
  p_value: 0.03,
  test: 'mcnemar_exact',
  pairs: 100,
  improved: 15,
  worsened: 5,
  obstacle: null,
  differences: [] as string[],
}

async function show(...runs: { p: number; differences?: string[] }[]): Promise<{ root: HTMLElement; end: () => void }> {
  const benchmarks = runs.map(({ p, differences = [] }, index) => ({
    job_id: JOBS[index + 1]?.id,
    benchmarks: [
      {
        baseline: { id: 'ev_a' },
        evaluation: { id: `ev_${index}` },
        comparison: { ...COMPARED, differences },
        p_adjusted: p,
      },
    ],
  }))
  answering('GET', () => answer(200, { baseline: 'job_base', evaluated: [], runs: benchmarks }))
  const page = { render: () => null }
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: page },
      { path: '/evaluations/:id', name: 'evaluation', component: page },
    ],
  })
  const shown = mount(EvaluationsPart, { found: { jobs: JOBS }, baseline: 'job_base' }, (app) => app.use(router))
  await vi.waitFor(() => {
    if (shown.root.querySelector('.sentence') === null) throw new Error('nothing has been read')
  })
  return shown
}

const textsOf = (root: HTMLElement, selector: string) =>
  [...root.querySelectorAll(selector)].map((each) => each.textContent?.trim())

afterEach(() => vi.restoreAllMocks())

describe('evaluations beside those of the baseline', () => {
  it('are judged by the p that is corrected for the number of runs', async () => {
    const { root, end } = await show({ p: 0.06 }, { p: 0.01 })

    expect(textsOf(root, '.sentence')).toEqual([
      'No significant difference between “new” and “base” on GSM8K (p = 0.06).',
      '“other” scores significantly higher than “base” on GSM8K (p = 0.01).',
    ])
    expect([...root.querySelectorAll<HTMLElement>('article')].map((card) => card.dataset.outcome)).toEqual([
      'unclear',
      'higher',
    ])
    expect(textsOf(root, '[data-test=corrected]')).toEqual(['p-values are corrected for 2 comparisons (Holm).'])
    end()
  })

  it('say in the same breath what was not measured alike', async () => {
    const { root, end } = await show({ p: 0.01, differences: ['engine.dtype'] })

    expect(textsOf(root, '.sentence')[0]).toMatch(/significantly higher .* Not measured alike: .+\.$/)
    expect(textsOf(root, '[data-test=corrected]')).toEqual([])
    end()
  })
})
