import { describe, expect, it } from 'vitest'

import { emptyDraft } from './draft'
import { isWorthKeeping, parseKept } from './kept'
import { emptySweep } from './sweep/draft'

describe('a launch that was begun', () => {
  it('is kept once somebody has put in something', () => {
    expect(isWorthKeeping({ draft: { ...emptyDraft(), recipe: 'sft', model: 'mdl_a' }, sweep: emptySweep() })).toBe(false)
    expect(isWorthKeeping({ draft: { ...emptyDraft(), params: { learning_rate: 1 } }, sweep: emptySweep() })).toBe(true)
    expect(isWorthKeeping({ draft: emptyDraft(), sweep: { ...emptySweep(), seeds: '1-3' } })).toBe(true)
  })
  it('comes back as it was, and not at all where it cannot be read', () => {
    const kept = { draft: { ...emptyDraft(), name: 'mine' }, sweep: emptySweep() }
    expect(parseKept(JSON.stringify(kept))).toEqual(kept)
    expect([parseKept(null), parseKept('{'), parseKept('{"draft":{"name":"x"},"sweep":{}}')]).toEqual([null, null, null])
  })
})
