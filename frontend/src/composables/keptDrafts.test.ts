import { describe, expect, it } from 'vitest'

import { addressOf, hasAllOf, parseKept } from './keptDrafts'

const soundOf = (found: unknown) => (hasAllOf({ name: '' }, found) ? (found as { name: string }) : null)

describe('drafts of forms', () => {
  it('come back as they were, each for its address', () => {
    const text = JSON.stringify([
      ['a', { name: 'mine' }],
      ['b', { name: 'other' }],
    ])

    expect([...parseKept(text, soundOf)]).toEqual([
      ['a', { name: 'mine' }],
      ['b', { name: 'other' }],
    ])
  })
  it('do not come back at all where they cannot be read', () => {
    const texts = [null, '{', '{"a":{}}', '[["a", {}]]', '[["a", null]]', '[["a", "name"]]']

    expect(texts.map((text) => parseKept(text, soundOf).size)).toEqual([0, 0, 0, 0, 0, 0])
  })
  it('are of one address, in whatever order its query is written', () => {
    expect(addressOf({ dataset: 'dst_a', recipe: 'sft' })).toBe(addressOf({ recipe: 'sft', dataset: 'dst_a' }))
    expect(addressOf({ dataset: 'dst_a' })).not.toBe(addressOf({}))
  })
})
