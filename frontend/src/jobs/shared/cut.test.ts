import { describe, expect, it } from 'vitest'

import { readView as readComparison, MOST_JOBS } from '../compare/view'
import { cutTo } from './cut'

describe('a list that is cut', () => {
  it('says how long it was, and nothing where all is shown', () => {
    expect(cutTo([1, 2, 3], 2)).toEqual({ shown: [1, 2], total: 3 })
    expect(cutTo([1, 2], 2)).toEqual({ shown: [1, 2], total: null })
  })

  it('is said of the runs of a comparison', () => {
    const ids = Array.from({ length: MOST_JOBS + 3 }, (_, index) => `job_${index}`)

    expect(readComparison({ ids: ids.join(',') })).toMatchObject({
      ids: ids.slice(0, MOST_JOBS),
      cutFrom: MOST_JOBS + 3,
    })
    expect(readComparison({ ids: 'job_a,job_b' }).cutFrom).toBeNull()
  })
})
