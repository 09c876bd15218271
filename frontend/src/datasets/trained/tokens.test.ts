import { describe, expect, it } from 'vitest'

import { readTokenView, turnsOf } from './tokens'

const row = {
  row: 4,
  segments: [
    { text: '<user>', role: 'user', token_count: 1, is_trained: false },
    { text: 'What is 1 + 1?', role: 'user', token_count: 6, is_trained: false },
    { text: '<assistant>', role: 'assistant', token_count: 1, is_trained: false },
    { text: '2', role: 'assistant', token_count: 1, is_trained: true },
  ],
  token_count: 9,
  trained_count: 1,
  is_truncated: true,
  problem: null,
}

describe('rows as they are trained on', () => {
  it('are read with their counts', () => {
    const view = readTokenView({ rows: [row], max_length: 9 })
    expect(view?.maxLength).toBe(9)
    expect(view?.rows[0]).toMatchObject({ row: 4, tokens: 9, trained: 1, isTruncated: true, problem: null })
  })

  it('may say why a row cannot be used', () => {
    const view = readTokenView({
      rows: [
        {
          row: 0,
          segments: [],
          token_count: 0,
          trained_count: 0,
          is_truncated: false,
          problem: 'no turn of the assistant',
          problem_code: 'no_answer',
        },
      ],
      note: 'Chosen answers.',
      note_code: 'chosen_is_learned',
    })
    expect(view?.rows[0]).toMatchObject({ problem: 'no turn of the assistant', problemCode: 'no_answer' })
    expect(view).toMatchObject({ note: 'Chosen answers.', noteCode: 'chosen_is_learned' })
    expect(view?.maxLength).toBeNull()
  })

  it.each([null, {}, { rows: 3 }, 'text'])('are none in %s', (result) => {
    expect(readTokenView(result)).toBeNull()
  })

  it('leave out what is no row', () => {
    expect(readTokenView({ rows: [null, { row: 'x' }, { row: 1, segments: [null] }] })?.rows).toEqual([
      { row: 1, segments: [], tokens: 0, trained: 0, isTruncated: false, problem: null, problemCode: null },
    ])
  })
})

describe('the turns of a row', () => {
  it('hold the neighbouring segments of one speaker', () => {
    const turns = turnsOf(readTokenView({ rows: [row] })?.rows[0]?.segments ?? [])
    expect(turns.map(({ role, tokens, trained }) => ({ role, tokens, trained }))).toEqual([
      { role: 'user', tokens: 7, trained: 0 },
      { role: 'assistant', tokens: 2, trained: 1 },
    ])
  })
})
