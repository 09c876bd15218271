import { describe, expect, it } from 'vitest'

import { toYaml } from './yaml'

describe('YAML', () => {
  it('nests by indentation', () => {
    expect(toYaml({ a: { b: 1, c: { d: 'text' } }, e: [] })).toBe('a:\n  b: 1\n  c:\n    d: text\ne: []\n')
  })

  it('writes lists of values and of objects', () => {
    expect(toYaml({ tags: ['x', 2], rows: [{ k: 1, v: 2 }] })).toBe('tags:\n  - x\n  - 2\nrows:\n  - k: 1\n    v: 2\n')
  })

  it.each(['true', 'no', '1.5', '007', 'a: b', '# x', '', ' x', 'x ', 'ja\nnein', '2026-01-01', '1e-6', '*a', '- x'])(
    'quotes the text %j, which would be read as something else',
    (text) => {
      expect(toYaml({ a: text })).toBe(`a: ${JSON.stringify(text)}\n`)
    },
  )

  it.each(['cosine', 'a/b.parquet', 'actor_rollout_ref.model', '/data/x y'])('leaves the text %j bare', (text) => {
    expect(toYaml({ a: text })).toBe(`a: ${text}\n`)
  })

  it('keeps numbers, booleans and null', () => {
    expect(toYaml({ a: 1e-6, b: false, c: null })).toBe('a: 0.000001\nb: false\nc: null\n')
  })
})
