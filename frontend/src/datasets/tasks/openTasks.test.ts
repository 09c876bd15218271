import { describe, expect, it } from 'vitest'

import type { DataTask } from '../types'
import { openTasksOf } from './openTasks'
import { fractionOf, isOver } from './useDataTask'

function task(fields: Partial<DataTask>): DataTask {
  return { id: 'dtk_1', kind: 'import', purpose: null, state: 'running', dataset: 'ds_1', ...fields } as DataTask
}

describe('the tasks that a dataset shows', () => {
  it('are those that wait or run on it', () => {
    const [running, queued] = [
      task({ id: 'a' }),
      task({ id: 'b', state: 'queued', kind: 'pipeline', purpose: 'pipeline' }),
    ]
    expect(openTasksOf([running, queued, task({ state: 'succeeded' })], 'ds_1')).toEqual([running, queued])
  })

  it('include a failed import until something came after it', () => {
    const failed = task({ id: 'a', state: 'failed' })
    expect(openTasksOf([failed], 'ds_1')).toEqual([failed])
    expect(openTasksOf([task({ id: 'b', state: 'succeeded' }), failed], 'ds_1')).toEqual([])
  })

  it('are not those of other datasets, nor what the tabs tell themselves', () => {
    expect(openTasksOf([task({ dataset: 'ds_2' }), task({ kind: 'pipeline', purpose: 'quality' })], 'ds_1')).toEqual([])
  })
})

describe('a task', () => {
  it('is over when nothing changes by itself any more', () => {
    expect(
      ['queued', 'running', 'succeeded', 'failed', 'cancelled'].map((state) =>
        isOver({ state: state as DataTask['state'] }),
      ),
    ).toEqual([false, false, true, true, true])
  })

  it('has a share only where the whole is known', () => {
    expect(fractionOf({ phase: 'read', rows_done: 5, rows: null })).toBeNull()
    expect(fractionOf({ phase: 'read', rows_done: 5, rows: 20 })).toBe(0.25)
    expect(fractionOf({ phase: 'read', rows_done: 30, rows: 20 })).toBe(1)
  })
})
