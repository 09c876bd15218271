import { nextTick, shallowRef } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import type { Job } from '../types'
import { useSelectedJobs } from './useSelectedJobs'

const job = (name: string, canStop = false) => ({ id: `job_${name}`, name, can_stop: canStop }) as Job
const [a, b, c] = [job('a'), job('b'), job('c')]
let asked: string[]

function choose(listed: Job[], ids: string[]) {
  const list = shallowRef<readonly Job[]>(listed)
  const selected = shallowRef<ReadonlySet<string>>(new Set(ids))
  const dropped: string[] = []
  const told: string[] = []
  const drop = (gone: string[]): void => {
    dropped.push(...gone)
    selected.value = new Set([...selected.value].filter((id) => !gone.includes(id)))
  }
  const { it: found, end } = withSetup(() => useSelectedJobs(list, selected, drop, (error) => told.push(error.code)))
  return { list, selected, dropped, told, found, end }
}

beforeEach(() => {
  asked = []
  answering('GET', ({ parts }) => {
    const id = parts.job_id ?? ''
    asked.push(id)
    return id === 'job_gone'
      ? answer(404, { error: 'job_not_found', message: 'gone', details: {} })
      : answer(200, { ...job(id.slice(4)), can_stop: true })
  })
})
afterEach(() => vi.restoreAllMocks())

describe('the chosen jobs', () => {
  it('stay when the list is filtered, and are read anew before something is done with them', async () => {
    const { list, found, end } = choose([a, b, c], [a.id, b.id, c.id])
    list.value = [b]
    await nextTick()

    expect(found.jobs.value).toEqual([a, b, c])
    expect(asked).toEqual([])
    expect(await found.readAll()).toEqual([job('a', true), b, job('c', true)])
    expect(asked).toEqual([a.id, c.id])
    end()
  })

  it('are read where no list had them, and leave the choice where they are no more', async () => {
    const { found, dropped, end } = choose([], [a.id, 'job_gone'])

    await vi.waitFor(() => expect(dropped).toEqual(['job_gone']))
    expect(found.jobs.value).toEqual([job('a', true)])
    end()
  })

  it('are not acted on in part where one cannot be read', async () => {
    answering('GET', () => answer(500, { error: 'internal_error', message: 'no', details: {} }))
    const { found, told, end } = choose([b], [a.id, b.id])

    expect(await found.readAll()).toBeNull()
    expect(told).toContain('internal_error')
    end()
  })
})
