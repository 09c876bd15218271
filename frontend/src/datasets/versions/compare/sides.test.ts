import { describe, expect, it } from 'vitest'

import type { Piece } from '@/ui/marking'

import { sidesOf } from './sides'

const read = (pieces: readonly Piece[] | null): string | null =>
  pieces?.map(({ mark, text }) => (mark === 'same' ? text : `[${text}]`)).join('') ?? null

describe('a row that differs', () => {
  it('shows on either side what stood there, with what changed marked', () => {
    const { fields, same } = sidesOf(
      { before: { id: 1, answer: 'four apples' }, after: { id: 1, answer: 'five apples' } },
      false,
    )
    expect(fields.map(({ name, before, after }) => [name, read(before), read(after)])).toEqual([
      ['answer', '[four] apples', '[five] apples'],
    ])
    expect(same).toEqual(['id'])
  })

  it('has an empty side where the row or the field is not there', () => {
    expect(sidesOf({ before: null, after: { a: 'x' } }, true).fields).toEqual([
      { name: 'a', state: 'same', before: null, after: [{ mark: 'same', text: 'x' }] },
    ])
    expect(
      sidesOf({ before: { a: 'x' }, after: { b: 'y' } }, true).fields.map(({ name, before, after }) => [
        name,
        read(before),
        read(after),
      ]),
    ).toEqual([
      ['a', '[x]', null],
      ['b', null, '[y]'],
    ])
  })

  it('leaves out long stretches that are the same, where that is asked for', () => {
    const long = 'word '.repeat(400)
    const row = { before: { text: `${long}old` }, after: { text: `${long}new` } }
    expect(read(sidesOf(row, true).fields[0]?.before ?? null)?.length).toBeLessThan(200)
    expect(read(sidesOf(row, false).fields[0]?.before ?? null)).toBe(`${long}[old]`)
  })
})
