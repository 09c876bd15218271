import { describe, expect, it } from 'vitest'

import { emptyDraft, overrideRow } from './draft'
import { soundOf } from './kept'
import { emptySweep } from './sweep/draft'

describe('launches that were begun', () => {
  it('come back as they were', () => {
    const mine = { draft: { ...emptyDraft(), name: 'mine' }, sweep: emptySweep() }

    expect(soundOf(JSON.parse(JSON.stringify(mine)))).toEqual(mine)
  })
  it('do not come back from another release', () => {
    const { name, ...older } = emptyDraft()

    expect(name).toBe('')
    expect([{ draft: older, sweep: emptySweep() }, { draft: emptyDraft(), sweep: {} }, {}, null].map(soundOf)).toEqual([
      null,
      null,
      null,
      null,
    ])
  })
  it('have rows that no later row shares its number with', () => {
    const draft = { ...emptyDraft(), overrides: [{ ...overrideRow('a', '1'), id: 1 }] }

    expect(soundOf({ draft, sweep: emptySweep() })?.draft.overrides[0]?.id).not.toBe(1)
  })
})
