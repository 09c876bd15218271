import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import SeedsPart from './SeedsPart.vue'

const JOBS = ['a', 'b', 'c'].map((name, seed) => ({
  id: `job_${name}`,
  name,
  seed,
  state: 'succeeded',
  can_clone: true,
}))
const FOUND = {
  jobs: JOBS,
  missing: [],
  parameters: [{ group: 'params', name: 'rate', values: { job_a: 1, job_b: 2, job_c: 3 } }],
  metric_keys: [{ key: 'reward', run_count: 3 }],
  metrics: [],
  seed_groups: [],
}
const group = (name: string, seeds: number) => ({
  name,
  job_ids: [`job_${name}`],
  seed_count: seeds,
  mean: 0.5,
  deviation: seeds > 1 ? 0.01 : null,
  values: [],
  left_out: [],
  failed: [],
})
const BETTER = { group: 1, verdict: 'better', difference: 0.03, low: 0.01, high: 0.05, p_value: 0.01, p_adjusted: 0.02 }
const FEW = {
  group: 2,
  verdict: 'too_few_seeds',
  difference: -0.1,
  low: null,
  high: null,
  p_value: null,
  p_adjusted: null,
}

function show(differences: unknown[], mode: string | null = 'max') {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/jobs/new', name: 'launch', component: { template: '' } }],
  })
  const seeds = {
    metric: 'reward',
    mode,
    take: 'last',
    method: 'welch_t',
    groups: [group('a', 3), group('b', 3), group('c', 1)],
    baseline: 0,
    differences,
    values: {},
    best: null,
  }
  return mount(SeedsPart, { found: FOUND, seeds, isStale: false }, (app) => app.use(router))
}

describe('what is said over seeds', () => {
  it('is which setting is better, by how much, with its interval and its seeds', () => {
    const { root, end } = show([BETTER, FEW])

    const [better, few] = [...root.querySelectorAll('[data-test=seed-sentence]')].map((one) => one.textContent)
    expect(better).toBe(
      '“b” is better than “a” on reward: +0.03, 95% CI +0.01 to +0.05 (p = 0.02 after Holm’s correction), 3 seeds each.',
    )
    expect(few).toContain('1 and 3 seeds. The difference may be chance; run 3 seeds of each.')
    end()
  })

  it('stands above the value of each setting, next to its name, where a phone shows it', () => {
    const { root, end } = show([BETTER])

    expect([...root.querySelectorAll('thead th')].map((head) => head.textContent)[1]).toBe('reward')
    expect(root.querySelector('[data-test=seed-group] th + td')?.classList.contains('number')).toBe(true)
    end()
  })

  it('is no more than that they differ on a metric without a better end', () => {
    const { root, end } = show([{ ...BETTER, verdict: 'different' }], null)

    expect(root.querySelector('[data-test=seed-sentence]')?.textContent).toMatch(
      /^“b” differs from “a” on reward: \+0\.03/,
    )
    expect(root.textContent).not.toContain('higher is better')
    end()
  })

  it('offers to run the seeds that a setting lacks', () => {
    const { root, end } = show([BETTER, FEW])

    const links = [...root.querySelectorAll<HTMLAnchorElement>('[data-test=more-seeds]')]
    expect(links.map((link) => decodeURIComponent(link.getAttribute('href') ?? ''))).toEqual([
      '/jobs/new?clone=job_c&sweep=1&seeds=3,+4',
    ])
    end()
  })

  it('is said once where no setting has a second seed', () => {
    const { root, end } = show([FEW, { ...FEW, group: 1 }])

    expect([...root.querySelectorAll('[data-test=seed-sentence]')].map((one) => one.textContent)).toEqual([
      'Too few seeds to tell these jobs apart: differences may be chance. Run 3 seeds of each.',
    ])
    end()
  })
})
