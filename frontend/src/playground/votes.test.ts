import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'

import { DEFAULTS } from './types'
import { areComparable, letterOf, sendVote, shuffled } from './votes'

afterEach(() => {
  vi.restoreAllMocks()
})

const MESSAGES = [{ role: 'user' as const, content: '1+1=' }]

describe('a vote', () => {
  it('says what both were given, what they answered, and whether their names were hidden', async () => {
    const sent: unknown[] = []
    answering('POST', ({ path, body }) => {
      sent.push(path, body)
      return answer(201, { id: 'vot_1' })
    })

    await sendVote({
      a: { model: 'base', text: '3', messages: MESSAGES },
      b: { model: 'sft', text: '2', messages: MESSAGES },
      verdict: 'b',
      isBlind: true,
      settings: { ...DEFAULTS, stop: 'User:', topK: 20 },
    })

    expect(sent).toEqual([
      '/api/v1/votes',
      {
        messages: MESSAGES,
        a: { model: 'base', text: '3' },
        b: { model: 'sft', text: '2' },
        verdict: 'b',
        is_blind: true,
        settings: { temperature: 0.7, top_p: 1, max_tokens: 256, seed: 1, stop: ['User:'], top_k: 20 },
      },
    ])
  })

  it('compares answers to the same conversation alone', () => {
    const one = { model: 'base', text: '3', messages: MESSAGES }

    expect(areComparable(one, { ...one, model: 'sft' })).toBe(true)
    expect(areComparable(one, { ...one, messages: [{ role: 'user', content: '2+2=' }] })).toBe(false)
  })

  it('mixes columns by chance and loses none', () => {
    const first = shuffled(['a', 'b', 'c'], () => 0)

    expect([...first].sort()).toEqual(['a', 'b', 'c'])
    expect(first).not.toEqual(['a', 'b', 'c'])
    expect(shuffled(['a', 'b', 'c'], () => 0.999)).toEqual(['a', 'b', 'c'])
    expect([0, 3].map(letterOf)).toEqual(['A', 'D'])
  })
})
