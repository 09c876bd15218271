import { describe, expect, it } from 'vitest'

import { newOrder, type OrderDraft, toOrder } from '../launch/draft'
import { type Configuration, fullLength, type RankedScore, settingsOf } from './settings'

function configuration(order: OrderDraft, seed = 0): Configuration {
  return { id: 'c', evaluations: 1, newest_at: '2026-01-01T00:00:00Z', order: toOrder(order), dataset: null, seed }
}

function said(order: OrderDraft, seed = 0): string[] {
  return settingsOf(configuration(order, seed)).map(({ name, value }) => `${name} ${value}`.trim())
}

describe('the settings of a board', () => {
  it('say that all problems were taken, and leave out what was left to the benchmark', () => {
    expect(said(newOrder('gsm8k', 1), 5)).toEqual(['all'])
  })

  it('name the seed only where it decides something', () => {
    expect(said({ ...newOrder('gsm8k', 1), limit: 100, shots: 8 }, 5)).toEqual(['limit 100', 'shots 8', 'seed 5'])
    expect(said({ ...newOrder('gsm8k', 1), temperature: 0.6, chat: 'never' }, 5)).toEqual([
      'all',
      'chat never',
      'temperature 0.6',
      'seed 5',
    ])
  })

  it('name what only one benchmark has', () => {
    expect(said({ ...newOrder('mmlu', 1), mode: 'generate', groups: ['astronomy'] })).toEqual([
      'all',
      'mode generate',
      'only astronomy',
    ])
    expect(said({ ...newOrder('math', 1), levels: [1, 5], groups: ['Algebra'] })).toEqual(['all', 'only 1, 5, Algebra'])
    expect(said({ ...newOrder('humaneval', 1), samples: 4, k: [1, 4], temperature: 0.8 })).toEqual([
      'all',
      'samples 4',
      'temperature 0.8',
      'seed 0',
    ])
  })
})

describe('the bars of a board', () => {
  function ranked(value: number, high: number | null = null): RankedScore {
    return {
      rank: 1,
      configuration: 'c',
      evaluation_id: 'ev_1',
      target: { kind: 'model', name: 'm', model: null, job: null, step: null },
      score: { metric: 'accuracy', value, low: null, high, stderr: null, method: 'none', n: 100 },
      created_at: '2026-01-01T00:00:00Z',
    }
  }

  it('are full at one for shares, and at the largest value for everything else', () => {
    expect(fullLength([ranked(0.9)], true)).toBe(1)
    expect(fullLength([ranked(12, 14), ranked(9)], false)).toBe(14)
    expect(fullLength([], false)).toBe(0)
  })
})
