import { describe, expect, it } from 'vitest'

import { markSides } from './sides'

function whole(pieces: readonly { text: string }[]): string {
  return pieces.map((piece) => piece.text).join('')
}

describe('two answers side by side', () => {
  it('each stay whole, and what only one says is marked', () => {
    const [a, b] = ['The sum is 42.\n#### 42', 'The sum is 41.\n#### 41']

    const sides = markSides(a, b)

    expect([whole(sides.a), whole(sides.b)]).toEqual([a, b])
    expect(sides.a.filter((piece) => piece.isOwn).map((piece) => piece.text)).toEqual(['42', '42'])
    expect(sides.b.filter((piece) => piece.isOwn).map((piece) => piece.text)).toEqual(['41', '41'])
  })

  it('have no marks where they are the same, also when both are empty', () => {
    expect(markSides('same', 'same').a).toEqual([{ text: 'same', isOwn: false }])
    expect(markSides('', '')).toEqual({ a: [], b: [] })
    expect(markSides('', 'new')).toEqual({ a: [], b: [{ text: 'new', isOwn: true }] })
  })
})
