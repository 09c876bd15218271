import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, expect, it, vi } from 'vitest'

import { pending } from '@/testing/pending'
import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { useComparison } from './useComparison'

const JOBS = ['job_a', 'job_b'].map((id) => ({
  id,
  name: id,
  state: 'succeeded',
  headline_metrics: ['loss'],
  resumes: [],
}))
const TABLES = {
  jobs: JOBS,
  metric_keys: [
    { key: 'loss', run_count: 2 },
    { key: 'grad_norm', run_count: 1 },
  ],
  seed_groups: [],
}
const curves = (keys: string[]) =>
  answer(200, {
    runs: JOBS.map((job) => ({
      job_id: job.id,
      series: keys.map((key) => ({
        key,
        steps: [1],
        values: [1],
        non_finite: [],
        total_points: 1,
        is_downsampled: false,
        stretch_steps: 1,
      })),
    })),
  })

afterEach(() => vi.restoreAllMocks())

it('keeps the charts that are there while another one is read', async () => {
  const second = pending()
  let reads = 0
  answering('GET', ({ path, query }) => {
    if (path.endsWith('/compare')) return answer(200, TABLES)
    if (!path.endsWith('/metrics')) return answer(200, null)
    const keys = query.keys as string[]
    if (!keys.includes('grad_norm')) return curves(['loss'])
    reads += 1
    return second.answer
  })
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  await router.push('/?ids=job_a,job_b')
  const { it: comparison, end } = withSetup(useComparison, (app) => app.use(router))
  await vi.waitFor(() => {
    expect(comparison.curves.data.value?.get('job_a')?.curves.has('loss')).toBe(true)
  })

  comparison.setView({ keys: ['grad_norm'] })
  await vi.waitFor(() => {
    expect(reads).toBe(1)
  })
  expect(comparison.curves.data.value?.get('job_a')?.curves.has('loss')).toBe(true)

  second.give(curves(['loss', 'grad_norm']))
  await vi.waitFor(() => {
    expect(comparison.curves.data.value?.get('job_b')?.curves.has('grad_norm')).toBe(true)
  })
  end()
})

it('says of how many charts the comparison shows the first', async () => {
  answering('GET', ({ path, query }) => {
    if (path.endsWith('/compare')) return answer(200, TABLES)
    return path.endsWith('/metrics') ? curves(query.keys as string[]) : answer(200, null)
  })
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  const keys = Array.from({ length: 30 }, (_, index) => `key=own_${index}`)
  await router.push(`/?ids=job_a,job_b&${keys.join('&')}`)
  const { it: comparison, end } = withSetup(useComparison, (app) => app.use(router))
  await vi.waitFor(() => {
    expect(comparison.charted.value.total).toBe(31)
  })

  expect(comparison.keys.value.length).toBeLessThan(31)
  end()
})
