import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import SourceDifference from './SourceDifference.vue'

const JOBS = [
  { id: 'job_source', name: 'first try' },
  { id: 'job_copy', name: 'second try' },
]

function show(found: object) {
  const asked: unknown[] = []
  answering('GET', ({ query }) => {
    asked.push(query.ids)
    return answer(200, { jobs: JOBS, missing: [], parameters: [], ...found })
  })
  return { asked, ...mount(SourceDifference, { jobId: 'job_copy', sourceId: 'job_source' }) }
}

afterEach(() => vi.restoreAllMocks())

describe('what a copied job changed', () => {
  it('stands beside the values of its source', async () => {
    const { root, asked, end } = show({
      parameters: [{ group: 'params', name: 'learning_rate', values: { job_source: 1e-6, job_copy: 3e-6 } }],
    })

    await vi.waitFor(() => {
      expect(root.querySelector('[data-setting=learning_rate]')).not.toBeNull()
    })
    expect([...root.querySelectorAll('td')].map((cell) => cell.textContent)).toEqual(['1e-6', '3e-6'])
    expect(asked).toEqual([['job_source,job_copy']])
    end()
  })

  it('is nothing where it changed nothing, and not told where the source is gone', async () => {
    const same = show({})
    await vi.waitFor(() => {
      expect(same.root.textContent).toContain('identical')
    })
    same.end()

    const gone = show({ missing: ['job_source'], jobs: JOBS.slice(1) })
    await vi.waitFor(() => {
      expect(gone.asked).toHaveLength(1)
    })
    expect(gone.root.querySelector('[data-test=source-difference]')).toBeNull()
    gone.end()
  })
})
