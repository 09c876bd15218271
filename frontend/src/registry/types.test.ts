import { describe, expect, it } from 'vitest'

import { ALIAS, aliasesOf, canRollBack, NAME, type NamedModel, type Promotion } from './types'

function step(id: number, alias: string, to: number, kind: 'promote' | 'rollback' = 'promote'): Promotion {
  return {
    id,
    alias,
    from_version: null,
    to_version: to,
    kind,
    note: '',
    gate: null,
    created_at: '2026-01-01T00:00:00Z',
  }
}

describe('a named model', () => {
  it('lists its aliases by name', () => {
    const named = { aliases: { production: 2, candidate: 3 } } as unknown as NamedModel

    expect(aliasesOf(named)).toEqual([
      { alias: 'candidate', version: 3 },
      { alias: 'production', version: 2 },
    ])
  })

  it('is rolled back only where the alias pointed to another version before', () => {
    const history = [step(3, 'production', 2), step(2, 'candidate', 2), step(1, 'production', 1)]

    expect(canRollBack(history, 'production')).toBe(true)
    expect(canRollBack(history, 'candidate')).toBe(false)
    expect(canRollBack([step(4, 'production', 1, 'rollback'), ...history], 'production')).toBe(false)
    expect(canRollBack([], 'production')).toBe(false)
  })

  it('takes the names that the API takes', () => {
    expect(['support-bot', '7b.v1'].map((name) => NAME.test(name))).toEqual([true, true])
    expect(['a b', '-a', ''].map((name) => NAME.test(name))).toEqual([false, false, false])
    expect([ALIAS.test('production'), ALIAS.test('3')]).toEqual([true, false])
  })
})
