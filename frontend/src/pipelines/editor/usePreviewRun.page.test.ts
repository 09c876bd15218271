import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick, shallowRef } from 'vue'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { type PreviewRequest, usePreviewRun } from './usePreviewRun'

type State = 'queued' | 'succeeded'

function requestOf(rows: number): PreviewRequest {
  return {
    pipeline: { name: 'tidy', description: '', seed: 0, steps: [] },
    dataset: 'ds_1',
    version: 'v',
    split: 'train',
    rows,
    at_random: false,
    find_changed: false,
    max_judge_cost: 0.5,
    resources: {},
  }
}

/** The platform: tasks get ids in turn, and stay queued until the test says that they are over. */
function platform(cancelAnswer = answer(200, {})) {
  const states = new Map<string, State>()
  const posts: string[] = []
  const made: (() => void)[] = []
  let isHeld = false
  const task = (id: string) => ({
    id,
    state: states.get(id),
    result: { rows_in: 1, rows_out: 1, steps: [] },
    cause: null,
    reason: null,
  })
  answering('POST', ({ path, parts }) => {
    if (path !== '/api/v1/pipelines/preview') {
      posts.push(`cancel ${parts.task_id ?? ''}`)
      return cancelAnswer
    }
    const id = `dtk_${states.size + 1}`
    states.set(id, 'queued')
    posts.push(`start ${id}`)
    return new Promise((resolve) => {
      const tell = () => {
        resolve(answer(202, task(id)))
      }
      if (isHeld) made.push(tell)
      else tell()
    })
  })
  answering('GET', ({ parts }) => answer(200, task(parts.task_id ?? '')))
  return {
    posts,
    finish: (id: string) => states.set(id, 'succeeded'),
    hold: () => (isHeld = true),
    tell: () => {
      for (const one of made) one()
    },
  }
}

function open() {
  const request = shallowRef<PreviewRequest | null>(requestOf(10))
  const { it: trial, end } = withSetup(() =>
    usePreviewRun(
      () => request.value,
      () => true,
    ),
  )

  async function change(next: PreviewRequest | null): Promise<void> {
    request.value = next
    await nextTick()
    await vi.advanceTimersByTimeAsync(1000)
  }

  return { trial, change, end }
}

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('a pipeline on a few rows', () => {
  it('shows what came of it, and says when that is of an earlier request', async () => {
    const { posts, finish } = platform()
    const { trial, change, end } = open()
    await vi.advanceTimersByTimeAsync(1000)
    finish('dtk_1')
    await vi.advanceTimersByTimeAsync(1000)
    expect([trial.preview.value?.rows_in, trial.isStale.value, trial.isRunning.value]).toEqual([1, false, false])

    await change(requestOf(20))

    expect(trial.isStale.value).toBe(true)
    expect(posts).toEqual(['start dtk_1', 'start dtk_2'])
    end()
  })

  it('is ended on the platform when another request takes its place, when nothing can be tried, and when the page is left', async () => {
    const { posts } = platform()
    const { change, end } = open()
    await vi.advanceTimersByTimeAsync(1000)

    await change(requestOf(20))
    await change(null)
    await change(requestOf(30))
    end()
    await vi.advanceTimersByTimeAsync(0)

    expect(posts).toEqual(['start dtk_1', 'start dtk_2', 'cancel dtk_1', 'cancel dtk_2', 'start dtk_3', 'cancel dtk_3'])
  })

  it('is ended as soon as its id is known, when it was given up before', async () => {
    const { posts, hold, tell } = platform()
    hold()
    const { end } = open()
    await vi.advanceTimersByTimeAsync(1000)

    end()
    tell()
    await vi.advanceTimersByTimeAsync(0)

    expect(posts).toEqual(['start dtk_1', 'cancel dtk_1'])
  })

  it('takes one that had ended before it was cancelled for ended', async () => {
    platform(answer(409, { error: 'data_task_finished', message: 'It is over.' }))
    const { trial, change, end } = open()
    await vi.advanceTimersByTimeAsync(1000)

    await change(null)

    expect(trial.error.value).toBeNull()
    end()
  })

  it('tells of one that could not be ended', async () => {
    platform(answer(500, { error: 'internal_error', message: 'no' }))
    const { trial, change, end } = open()
    await vi.advanceTimersByTimeAsync(1000)

    await change(null)

    expect(trial.error.value?.code).toBe('internal_error')
    end()
  })
})
