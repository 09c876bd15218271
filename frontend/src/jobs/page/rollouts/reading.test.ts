import { describe, expect, it } from 'vitest'

import { isFiltered, NO_FILTER, queryOf } from './filter'
import { passagesOf } from './passages'
import { keyIn } from './place'
import { firstPlace, layOut, type MapCell, nextPlace, rangeOf } from './promptMap'

describe('a response as chat', () => {
  it.each([
    ['plain', [['text', 'plain']]],
    [
      '<think>a</think>b',
      [
        ['thinking', 'a'],
        ['text', 'b'],
      ],
    ],
    [
      'so <think>a</think> b',
      [
        ['text', 'so'],
        ['thinking', 'a'],
        ['text', 'b'],
      ],
    ],
    [
      'begun in the prompt</think>b',
      [
        ['thinking', 'begun in the prompt'],
        ['text', 'b'],
      ],
    ],
    ['<think>never ended', [['thinking', 'never ended']]],
    [
      'a </think> b <think> c',
      [
        ['thinking', 'a'],
        ['text', 'b <think> c'],
      ],
    ],
    ['<think></think>', []],
    [
      '<think>a</think>Let me see.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
      [
        ['thinking', 'a'],
        ['text', 'Let me see.'],
        ['call', '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'],
      ],
    ],
    ['a <tool_call>{"name": </tool_call> b', [['text', 'a <tool_call>{"name": </tool_call> b']]],
    ['<tool_call>{"name": "cut', [['text', '<tool_call>{"name": "cut']]],
  ])('%s', (response, expected) => {
    expect(passagesOf(response).map((part) => [part.kind, part.text])).toEqual(expected)
  })
})

describe('calls of tools in a response', () => {
  it('have their names and arguments, also where these are JSON in a string', () => {
    const response =
      '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call><tool_call>{"name": "now"}</tool_call>' +
      '<tool_call>{"name": "find", "arguments": "{\\"q\\": \\"x\\"}"}</tool_call>'

    expect(passagesOf(response).map((part) => (part.kind === 'call' ? part.call : null))).toEqual([
      { name: 'add', arguments: { a: 1 } },
      { name: 'now', arguments: {} },
      { name: 'find', arguments: { q: 'x' } },
    ])
  })
})

describe('the filter', () => {
  it('asks for what is set only', () => {
    const query = queryOf({ ...NO_FILTER, text: 'x', scoreFrom: 0, partFrom: 1 })

    expect(JSON.parse(JSON.stringify(query))).toEqual({ text: 'x', min_score: 0 })
  })

  it('knows whether it filters', () => {
    expect([
      isFiltered(NO_FILTER),
      isFiltered({ ...NO_FILTER, tokensTo: 0 }),
      isFiltered({ ...NO_FILTER, text: 'x' }),
    ]).toEqual([false, true, true])
  })
})

describe('the map', () => {
  const cell = (column: number, mean: number | null): MapCell => ({
    column,
    step: column,
    count: 1,
    mean,
    tokens: 1,
    is_uniform: false,
  })
  const row = (...cells: MapCell[]) => ({ prompt_key: 'k', excerpt: 'p', steps: 1, mean: null, cells })
  const map = {
    split: 'train' as const,
    columns: [0, 1, 2].map((step) => ({ from_step: step, to_step: step })),
    rows: [row(), row(cell(0, 0.5), cell(2, null)), row(cell(2, 2))],
    prompt_count: 3,
    totals: { groups: 0, uniform: 0, all_correct: null, all_wrong: null, tokens: 0, uniform_tokens: 0 },
  }
  const cells = layOut(map)

  it('leaves places free where a prompt was not sampled', () => {
    expect(cells.map((line) => line.map((one) => one !== null))).toEqual([
      [false, false, false],
      [true, false, true],
      [false, false, true],
    ])
    expect(rangeOf(map)).toEqual({ low: 0, high: 2 })
  })

  it.each([
    ['ArrowRight', { row: 1, column: 0 }, { row: 1, column: 2 }],
    ['ArrowDown', { row: 1, column: 2 }, { row: 2, column: 2 }],
    ['ArrowUp', { row: 1, column: 0 }, null],
    ['Enter', { row: 1, column: 0 }, null],
  ])('%s leads from %o to %o', (key, from, to) => {
    expect(firstPlace(cells)).toEqual({ row: 1, column: 0 })
    expect(nextPlace(cells, from, key)).toEqual(to)
  })
})

it('takes no key of a prompt from the address that is none', () => {
  expect(['0a1b', '', 'a/b', undefined].map(keyIn)).toEqual(['0a1b', null, null, null])
})
