import { describe, expect, it } from 'vitest'

import type { Job } from '../../types'
import { labelsOf, scoreOf, scoresUnasked } from './scores'

function evaluated(labels: string[], rules: { best_by?: unknown; early_stop?: unknown } = {}): Pick<Job, 'evaluate'> {
  return {
    evaluate: { benchmarks: labels.map((label) => ({ label })), best_by: null, early_stop: null, ...rules },
  } as never
}

describe('the scores of checkpoints', () => {
  it('are told from other metrics that are called alike', () => {
    expect(scoreOf('eval/gsm8k/flexible', ['gsm8k'])).toEqual({ label: 'gsm8k', metric: 'flexible' })
    expect(scoreOf('eval/rewards/margins', ['gsm8k'])).toBeNull()
    expect(scoreOf('eval/gsm8k-2/strict', ['gsm8k'])).toBeNull()
  })

  it('belong to a job that asks for them', () => {
    expect(labelsOf(evaluated(['gsm8k', 'mmlu']))).toEqual(['gsm8k', 'mmlu'])
    expect(labelsOf({ evaluate: null })).toEqual([])
  })
})

describe('what is charted unasked', () => {
  const reported = ['eval/gsm8k/flexible', 'eval/gsm8k/strict', 'eval/arc_easy/acc', 'loss']

  it('is one score of each benchmark, as far as it is reported', () => {
    expect(scoresUnasked(evaluated(['gsm8k', 'arc_easy', 'mmlu']), reported)).toEqual([
      'eval/gsm8k/flexible',
      'eval/arc_easy/acc',
    ])
  })

  it('is the score that decides something, where one does', () => {
    expect(scoresUnasked(evaluated(['gsm8k'], { best_by: { label: 'gsm8k', metric: 'strict' } }), reported)).toEqual([
      'eval/gsm8k/strict',
    ])
    expect(scoresUnasked(evaluated(['gsm8k'], { early_stop: { label: 'gsm8k', metric: 'gone' } }), reported)).toEqual([
      'eval/gsm8k/flexible',
    ])
  })
})
