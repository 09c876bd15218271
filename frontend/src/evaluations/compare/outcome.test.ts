import { describe, expect, it } from 'vitest'

import { type ComparedBenchmark, type Comparison, outcomeOf, samplesOf, sayP, shapesOf } from './outcome'

function compared(parts: Partial<ComparedBenchmark> = {}): ComparedBenchmark {
  const score = { metric: 'accuracy', value: 0.5, stderr: null, low: null, high: null, method: 'none', n: 10 } as const
  return {
    label: 'gsm8k',
    benchmark: 'gsm8k',
    dataset: null,
    metric: 'accuracy',
    a: score,
    b: score,
    difference: 0.1,
    low: 0.01,
    high: 0.19,
    p_value: 0.03,
    test: 'mcnemar',
    pairs: 100,
    improved: 15,
    worsened: 5,
    obstacle: null,
    differences: [],
    ...parts,
  }
}

describe('what a comparison comes to', () => {
  it('is a difference only where chance hardly explains it', () => {
    expect(outcomeOf(compared())).toBe('higher')
    expect(outcomeOf(compared({ difference: -0.1 }))).toBe('lower')
    expect(outcomeOf(compared({ p_value: 0.05 }))).toBe('unclear')
  })

  it('is nothing where nothing was paired, however far the scores are apart', () => {
    expect(outcomeOf(compared({ p_value: null, test: null, pairs: 0 }))).toBe('untested')
  })

  it('tells equal answers from equal scores', () => {
    expect(outcomeOf(compared({ difference: 0, improved: 0, worsened: 0, p_value: 1 }))).toBe('same')
    expect(outcomeOf(compared({ difference: 0, improved: 5, worsened: 5, p_value: 1 }))).toBe('unclear')
  })
})

describe('p-values', () => {
  it('have as many digits as mean something', () => {
    expect([0.0000001, 0.04231, 0.5, 0.42789, 1].map(sayP)).toEqual([
      '< 0.001',
      '= 0.042',
      '= 0.5',
      '= 0.43',
      '> 0.999',
    ])
  })
})

describe('the problems that changed', () => {
  it('are looked at in the second evaluation, against the first', () => {
    expect(samplesOf('ev_a', 'ev_b', 'gsm8k', 'worse')).toEqual({
      name: 'evaluation',
      params: { id: 'ev_b' },
      query: { tab: 'samples', label: 'gsm8k', against: 'ev_a', changed: 'worse' },
    })
  })
})

describe('the radar of a comparison', () => {
  it('shows shares and nothing else, of every evaluation that has them', () => {
    const score = compared().a
    const table = (label: string, metric: string) => ({
      label,
      benchmark: label,
      dataset: null,
      metric,
      baseline: score,
      others: [{ evaluation_id: 'b', comparison: compared(), p_adjusted: 0.03 }],
      missing: ['c'],
    })
    const comparison = {
      baseline: 'a',
      evaluations: ['a', 'b', 'c'].map((id) => ({ id })),
      benchmarks: [table('gsm8k', 'accuracy'), table('wikitext', 'word_perplexity')],
      unshared: [],
    }

    const shapes = shapesOf(
      comparison as unknown as Comparison,
      (one) => one.label.toUpperCase(),
      (metric) => !metric.includes('perplexity'),
    )

    expect(shapes.axes).toEqual(['GSM8K'])
    expect([...shapes.values]).toEqual([
      ['a', [0.5]],
      ['b', [0.5]],
      ['c', [null]],
    ])
  })
})
