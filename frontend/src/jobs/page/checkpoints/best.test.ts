import { describe, expect, it } from 'vitest'

import { bestKeys, bestParams } from './best'

describe('the best checkpoint', () => {
  it('is asked for without a direction until a person chooses one', () => {
    expect(bestParams({ metric: null, mode: null })).toEqual({})
    expect(bestParams({ metric: 'actor/ppl', mode: null })).toEqual({ best_by: 'actor/ppl' })
    expect(bestParams({ metric: 'actor/ppl', mode: 'max' })).toEqual({ best_by: 'actor/ppl', mode: 'max' })
  })

  it('has no direction without a metric', () => {
    expect(bestParams({ metric: null, mode: 'min' })).toEqual({})
  })

  it('may be told by every metric that the job has reported, those of the checkpoints first', () => {
    const keys = bestKeys(['val/loss', 'val/ppl'], ['val/loss', 'perf/throughput', 'actor/nll'])

    expect(keys).toEqual(['val/loss', 'val/ppl', 'actor/nll', 'perf/throughput'])
  })
})
