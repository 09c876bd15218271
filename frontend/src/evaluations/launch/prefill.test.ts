import { describe, expect, it } from 'vitest'

import { readPrefill } from './prefill'

describe('what a link fills in', () => {
  it('is models, checkpoints by job and step, and benchmarks', () => {
    expect(
      readPrefill({ model: ['mdl_1', 'mdl_2', 'mdl_1'], job: 'job_1', step: '40', benchmarks: 'gsm8k,math500' }),
    ).toEqual({
      models: ['mdl_1', 'mdl_2'],
      checkpoints: [{ job: 'job_1', name: 'job_1', step: 40 }],
      benchmarks: ['gsm8k', 'math500'],
    })
  })

  it('pairs several jobs with their steps', () => {
    expect(readPrefill({ job: ['job_1', 'job_1'], step: ['10', '20'] }).checkpoints.map((one) => one.step)).toEqual([
      10, 20,
    ])
  })

  it('leaves out what is no step and what is no benchmark', () => {
    expect(readPrefill({ job: 'job_1', step: '-1', benchmarks: 'gsm8k,magic,' })).toEqual({
      models: [],
      checkpoints: [],
      benchmarks: ['gsm8k'],
    })
    expect(readPrefill({ job: 'job_1' }).checkpoints).toEqual([])
    expect(readPrefill({})).toEqual({ models: [], checkpoints: [], benchmarks: [] })
  })
})
