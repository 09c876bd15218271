import { describe, expect, it } from 'vitest'

import { dropOn, type QueuedJob, stepOf } from './order'

const item = (id: string, kind = 'train') => ({ job: { id, kind }, start: null }) as QueuedJob
const ITEMS = [item('a'), item('b', 'export'), item('c'), item('m', 'evaluate'), item('n', 'evaluate')]

describe('moving a job in the queue', () => {
  it('goes one place up or down, or to the top', () => {
    expect(stepOf(ITEMS, 'c', 'up')).toBe('b')
    expect(stepOf(ITEMS, 'a', 'down')).toBe('c')
    expect(stepOf(ITEMS, 'b', 'down')).toBeNull()
    expect(stepOf(ITEMS, 'c', 'top')).toBe('a')
  })

  it('ends at the ends of its own line', () => {
    expect(stepOf(ITEMS, 'a', 'up')).toBeUndefined()
    expect(stepOf(ITEMS, 'c', 'down')).toBeUndefined()
    expect(stepOf(ITEMS, 'm', 'up')).toBeUndefined()
    expect(stepOf(ITEMS, 'm', 'down')).toBeNull()
    expect(stepOf(ITEMS, 'gone', 'up')).toBeUndefined()
  })

  it('goes nowhere behind the last job of a list that has only the begin of the queue', () => {
    expect(stepOf(ITEMS, 'b', 'down', false)).toBeUndefined()
    expect(stepOf(ITEMS, 'a', 'down', false)).toBe('c')
    expect(dropOn(ITEMS, 'a', 'c', false)).toBeUndefined()
    expect(dropOn(ITEMS, 'c', 'a', false)).toBe('a')
  })

  it('lands where it was dropped, from above and from below', () => {
    expect(dropOn(ITEMS, 'c', 'a')).toBe('a')
    expect(dropOn(ITEMS, 'a', 'b')).toBe('c')
    expect(dropOn(ITEMS, 'a', 'c')).toBeNull()
    expect(dropOn(ITEMS, 'a', 'a')).toBeUndefined()
    expect(dropOn(ITEMS, 'a', 'm')).toBeUndefined()
  })
})
