import { describe, expect, it } from 'vitest'

import { emptyDraft, overrideRow } from './draft'
import { addressOf, parseKept } from './kept'
import { emptySweep } from './sweep/draft'

describe('launches that were begun', () => {
  it('come back as they were, each for its address', () => {
    const [mine, other] = ['mine', 'other'].map((name) => ({ draft: { ...emptyDraft(), name }, sweep: emptySweep() }))

    expect([
      ...parseKept(
        JSON.stringify([
          ['a', mine],
          ['b', other],
        ]),
      ),
    ]).toEqual([
      ['a', mine],
      ['b', other],
    ])
  })
  it('do not come back at all where they cannot be read', () => {
    const texts = [null, '{', '{"draft":{}}', '[["a", {"draft":{"name":"x"},"sweep":{}}]]', '[["a", null]]']

    expect(texts.map((text) => parseKept(text).size)).toEqual([0, 0, 0, 0, 0])
  })
  it('have rows that no later row shares its number with', () => {
    const draft = { ...emptyDraft(), overrides: [{ ...overrideRow('a', '1'), id: 1 }] }

    const read = parseKept(JSON.stringify([['', { draft, sweep: emptySweep() }]])).get('')

    expect(read?.draft.overrides[0]?.id).not.toBe(1)
  })
  it('are of one address, in whatever order its query is written', () => {
    expect(addressOf({ dataset: 'dst_a', recipe: 'sft' })).toBe(addressOf({ recipe: 'sft', dataset: 'dst_a' }))
    expect(addressOf({ dataset: 'dst_a' })).not.toBe(addressOf({}))
  })
})
