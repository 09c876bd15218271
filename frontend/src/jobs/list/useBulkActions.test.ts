import { describe, expect, it } from 'vitest'

import type { Job } from '../types'
import { runAll } from './useBulkActions'

describe('an action on several jobs', () => {
  it('goes on behind a job that is refused', async () => {
    const jobs = ['a', 'b', 'c'].map((id) => ({ id, name: id }) as Job)
    const asked: string[] = []

    const outcome = await runAll(jobs, (job) => {
      asked.push(job.id)
      return job.id === 'b' ? Promise.reject(new Error('no')) : Promise.resolve()
    })

    expect(asked).toEqual(['a', 'b', 'c'])
    expect(outcome.done).toEqual(['a', 'c'])
    expect(outcome.failed).toEqual([{ name: 'b', cause: new Error('no') }])
  })
})
