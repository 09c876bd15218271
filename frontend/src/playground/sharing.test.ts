import { describe, expect, it } from 'vitest'

import { contentOf, type Shown, shownOf } from './sharing'
import { type Answer, DEFAULTS, newAnswer } from './types'

function answer(text: string, changes: Partial<Answer> = {}): Answer {
  return { ...newAnswer(false), state: 'done', tokens: [{ text, logprob: -1, top: [] }], ...changes }
}

const SAMPLING = { stop: '\\n', topK: 20, minP: 0.1, presencePenalty: 0.5, frequencyPenalty: -0.5 }
const CALL = { id: 'call_1', name: 'weather', arguments: '{}' }

function shown(turns: Answer[][]): Shown {
  return {
    settings: { ...DEFAULTS, seed: null, tools: '[]', topP: 0.5, thinking: 'off', ...SAMPLING },
    context: [{ role: 'user', content: 'Hello' }],
    prompts: ['1+1=', 'Sure?'],
    columns: [{ model: 'base', turns }],
  }
}

describe('a shared conversation', () => {
  it('comes back with settings, calls and answers, edited ones as such', () => {
    const turns = [
      [answer('', { calls: [CALL], results: ['-4'] }), answer('Cold.')],
      [answer('Yes.', { edited: 'No.' })],
    ]

    const found = shownOf(contentOf(shown(turns)))

    expect(found).toMatchObject({ ...shown([]), columns: [{ model: 'base' }] })
    const [first, second] = found.columns[0]?.turns ?? []
    expect(first).toMatchObject([
      { calls: [CALL], results: ['-4'], edited: null, state: 'done' },
      { tokens: [{ text: 'Cold.' }], edited: null },
    ])
    expect(second).toMatchObject([{ tokens: [{ text: 'No.' }], edited: 'No.' }])
  })

  it('keeps calls waiting that have no results', () => {
    const found = shownOf(contentOf(shown([[answer('', { calls: [CALL] })]])))

    expect(found.columns[0]?.turns[0]?.[0]?.results).toBeNull()
  })

  it('ends before an answer that failed', () => {
    const turns = [[answer('2')], [answer('x', { state: 'failed' })], [answer('later')]]

    expect(contentOf(shown(turns)).columns[0]?.turns?.map((steps) => steps.map(({ text }) => text))).toEqual([
      ['2'],
      [],
    ])
  })
})
