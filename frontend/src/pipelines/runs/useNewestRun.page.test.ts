import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick, ref } from 'vue'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { useNewestRun } from './useNewestRun'

type State = 'running' | 'succeeded' | 'failed'

/** Runs of versions, the newest first; the test changes how they stand. */
function platform(runs: Record<string, [id: string, state: State][]>) {
  const find = (id: string) =>
    Object.values(runs)
      .flat()
      .find(([one]) => one === id)
  const show = ([id, state]: [string, State]) => ({ task: { id, state }, pipeline: { steps: [] }, report: null })
  answering('GET', ({ parts, query }) => {
    if (parts.task_id === undefined)
      return answer(200, { items: (runs[String(query.version)] ?? []).map(show), next_cursor: null })
    const found = find(parts.task_id)
    return found === undefined ? answer(404, { error: 'run_not_found', message: 'no' }) : answer(200, show(found))
  })
  answering('POST', ({ body }) => {
    const { version } = body as { version: string }
    const made: [string, State] = [`new of ${version}`, 'running']
    runs[version] = [made, ...(runs[version] ?? [])]
    return answer(202, show(made))
  })
  return {
    settle: (id: string, state: State) => {
      const found = find(id)
      if (found !== undefined) found[1] = state
    },
  }
}

function open() {
  const version = ref('v1')
  const { it: newest, end } = withSetup(() =>
    useNewestRun(() => ({ dataset: 'ds_1', version: version.value }), 'quality'),
  )
  return { version, newest, end, ids: () => [newest.run.value?.task.id, newest.reported.value?.task.id] }
}

async function pass(ms = 0): Promise<void> {
  await nextTick()
  await vi.advanceTimersByTimeAsync(ms)
}

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('the newest run of a version', () => {
  it('is the one whose report is shown where it has one', async () => {
    platform({
      v1: [
        ['b', 'succeeded'],
        ['a', 'succeeded'],
      ],
    })
    const { ids, end } = open()

    await pass()

    expect(ids()).toEqual(['b', 'b'])
    end()
  })

  it('leaves the report of an earlier one in place when it failed', async () => {
    platform({
      v1: [
        ['c', 'failed'],
        ['b', 'failed'],
        ['a', 'succeeded'],
      ],
    })
    const { ids, end } = open()

    await pass()

    expect(ids()).toEqual(['c', 'a'])
    end()
  })

  it('takes the place of the earlier report when its own is there, and not before', async () => {
    const { settle } = platform({ v1: [['a', 'succeeded']] })
    const { newest, ids, end } = open()
    await pass()

    await newest.start('quality', [])
    await pass()
    expect([ids(), newest.isRunning.value]).toEqual([['new of v1', 'a'], true])

    settle('new of v1', 'succeeded')
    await pass(1000)
    expect(ids()).toEqual(['new of v1', 'new of v1'])
    end()
  })

  it('does not show the report of another version', async () => {
    platform({ v1: [['a', 'succeeded']], v2: [] })
    const { version, newest, ids, end } = open()
    await pass()

    version.value = 'v2'
    await pass()

    expect([ids(), newest.isEmpty.value]).toEqual([[undefined, undefined], true])
    end()
  })

  it('says what kept the reports from being read', async () => {
    answering('GET', () => answer(500, { error: 'internal_error', message: 'no' }))
    const { newest, end } = open()

    await pass()

    expect([newest.loadError.value?.code, newest.isEmpty.value]).toEqual(['internal_error', false])
    end()
  })
})
