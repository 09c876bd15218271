import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { effectScope, shallowRef } from 'vue'

import { api } from '@/api/client'

import type { Job } from '../types'
import { useSparklines } from './useSparklines'

function job(id: string, state: Job['state'], step: number): Job {
  return { id, state, attempt: 1, headline_metrics: ['loss'], progress: { step } } as Job
}

function curve(key: string, value: number) {
  return { key, steps: [1], values: [value], non_finite: [], total_points: 1, is_downsampled: false }
}

const answer = { series: [curve('loss', 0.5)] }

beforeEach(() => {
  vi.useFakeTimers({ now: 0 })
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function follow(first: Job[]) {
  const read: string[] = []
  vi.spyOn(api, 'GET').mockImplementation(((_path: string, { params }: { params: { path: { job_id: string } } }) => {
    read.push(params.path.job_id)
    return new Promise((resolve) =>
      setTimeout(() => {
        resolve({ data: answer, response: new Response() })
      }, 100),
    )
  }) as unknown as typeof api.GET)
  const jobs = shallowRef<readonly Job[]>(first)
  const scope = effectScope()
  scope.run(() => useSparklines(() => jobs.value))
  return {
    read,
    jobs,
    end: () => {
      scope.stop()
    },
  }
}

describe('the curves of a list', () => {
  it('are read again now and then while a job runs, however many steps it makes', async () => {
    const { read, jobs, end } = follow([job('a', 'running', 1)])
    for (let step = 2; step <= 5; step += 1) {
      await vi.advanceTimersByTimeAsync(2_000)
      jobs.value = [job('a', 'running', step)]
    }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(read).toEqual(['a'])

    await vi.advanceTimersByTimeAsync(6_000)
    jobs.value = [job('a', 'running', 6)]
    await vi.advanceTimersByTimeAsync(1_000)
    expect(read).toEqual(['a', 'a'])
    end()
  })

  it('are of the metric that the rows show, and change with it', async () => {
    const asked: string[][] = []
    vi.spyOn(api, 'GET').mockImplementation(((_path: string, { params }: { params: { query: { keys: string[] } } }) => {
      asked.push(params.query.keys)
      return Promise.resolve({
        data: { series: params.query.keys.map((key) => curve(key, 1)) },
        response: new Response(),
      })
    }) as unknown as typeof api.GET)
    const of = (key: string) => ({ ...job('a', 'succeeded', 9), metric: { key } }) as Job
    const jobs = shallowRef<readonly Job[]>([of('loss')])
    const scope = effectScope()
    const sparks = scope.run(() => useSparklines(() => jobs.value))
    await vi.advanceTimersByTimeAsync(100)
    expect(sparks?.get('a')?.key).toBe('loss')

    jobs.value = [of('val/loss')]
    await vi.advanceTimersByTimeAsync(100)
    expect(sparks?.get('a')?.key).toBe('val/loss')
    expect(asked).toEqual([['loss'], ['val/loss', 'loss']])
    scope.stop()
  })

  it('are all read, even where the list is refreshed before the last one had its turn', async () => {
    const all = ['a', 'b', 'c', 'd'].map((id) => job(id, 'succeeded', 9))
    const { read, jobs, end } = follow(all)
    await vi.advanceTimersByTimeAsync(50)
    jobs.value = [...all]
    await vi.advanceTimersByTimeAsync(1_000)
    expect(read).toEqual(['a', 'b', 'c', 'd'])
    end()
  })
})
