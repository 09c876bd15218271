import { afterEach, describe, expect, it } from 'vitest'
import { nextTick, reactive } from 'vue'

import { mount } from '@/testing/withSetup'

import type { DataTask } from '../types'
import TaskProgress from './TaskProgress.vue'

function taskOf(fields: Partial<DataTask> = {}): DataTask {
  const progress = {
    phase: 'read',
    rows_done: 10,
    rows: 100,
    rows_per_s: null,
    eta_s: null,
    stage: null,
    stages: null,
    steps: [],
    counts: {},
  }
  return {
    id: 'dtk_1',
    state: 'running',
    progress,
    attempt: 1,
    reason: null,
    cause: null,
    can_cancel: true,
    can_retry: false,
    ...fields,
  } as DataTask
}

function open(task: DataTask) {
  const props = reactive({ task })
  const { root, end } = mount(TaskProgress, props)
  return {
    end,
    said: () =>
      [...root.querySelectorAll('[role=status], [role=alert], [aria-live]')].map((part) => part.textContent.trim()),
    bar: () => root.querySelector('[role=progressbar]'),
    async become(next: DataTask) {
      props.task = next
      await nextTick()
    },
  }
}

afterEach(() => {
  document.body.replaceChildren()
})

describe('the progress of a task', () => {
  it('is told by a bar, and read out only when the state changes', async () => {
    const { said, bar, become, end } = open(taskOf())
    const before = said()

    await become(taskOf({ progress: { ...taskOf().progress, rows_done: 40, rows_per_s: 12, eta_s: 5 } }))
    expect(bar()?.getAttribute('aria-valuenow')).toBe('40')
    expect(said()).toEqual(before)

    await become(taskOf({ state: 'succeeded' }))
    expect(said()).not.toEqual(before)
    expect(bar()).toBeNull()
    end()
  })

  it('is followed by why it failed, at once', async () => {
    const { said, become, end } = open(taskOf())

    await become(taskOf({ state: 'failed', cause: null, reason: 'None of the rows can be read.' }))

    expect(said()).toContain('None of the rows can be read.')
    end()
  })
})
