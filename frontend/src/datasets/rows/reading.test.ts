import { describe, expect, it } from 'vitest'

import { readRow, readTurns } from './reading'

describe('reading a row', () => {
  it('shows a question and its answer as two turns, by the columns that the server named', () => {
    const reading = readRow(
      { question: '2 + 2?', answer: 4, level: 'easy' },
      { format: 'prompt-answer', format_columns: { prompt: 'question', answer: 'answer' } },
    )

    expect(reading).toEqual({
      kind: 'conversation',
      turns: [
        { role: 'user', text: '2 + 2?' },
        { role: 'assistant', text: '4' },
      ],
      expected: null,
      rest: { level: 'easy' },
    })
  })

  it('shows the expected answer beside the prompt of a verl row, and keeps its other columns', () => {
    const reading = readRow(
      {
        data_source: 'maths',
        prompt: [{ role: 'user', content: '1 + 1?' }],
        reward_model: { style: 'rule', ground_truth: '2' },
      },
      {
        format: 'verl-rl',
        format_columns: { data_source: 'data_source', prompt: 'prompt', reward_model: 'reward_model' },
      },
    )

    expect(reading).toMatchObject({ kind: 'conversation', turns: [{ role: 'user', text: '1 + 1?' }], expected: '2' })
    expect(reading.rest).toHaveProperty('data_source', 'maths')
  })

  it('shows tool calls of a message that has no content', () => {
    const turns = readTurns([{ role: 'assistant', content: null, tool_calls: [{ name: 'add' }] }], 'user')

    expect(turns?.[0]?.text).toContain('"name": "add"')
  })

  it('sets chosen and rejected answers side by side, with or without a prompt', () => {
    const columns = { chosen: 'chosen', rejected: 'rejected' }
    const bare = readRow({ chosen: 'yes', rejected: 'no' }, { format: 'preference', format_columns: columns })
    const asked = readRow(
      { prompt: 'ok?', chosen: 'yes', rejected: 'no' },
      { format: 'preference', format_columns: { ...columns, prompt: 'prompt' } },
    )

    expect(bare).toMatchObject({ kind: 'pair', prompt: [], chosen: [{ role: 'assistant', text: 'yes' }] })
    expect(asked).toMatchObject({ prompt: [{ role: 'user', text: 'ok?' }] })
  })

  it('falls back to the fields where the value is not what the format says', () => {
    expect(readRow({ messages: 3 }, { format: 'messages', format_columns: { messages: 'messages' } }).kind).toBe(
      'fields',
    )
    expect(readRow({ a: 1 }, { format: 'unknown', format_columns: {} })).toEqual({ kind: 'fields', rest: { a: 1 } })
  })
})
