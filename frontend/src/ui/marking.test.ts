import { describe, expect, it } from 'vitest'

import { cutSame, markRows, markTexts, type Piece, readable, visible } from './marking'

function said(pieces: readonly Piece[]): string {
  return pieces
    .map(({ mark, text }) => (mark === 'same' ? text : mark === 'gone' ? `[-${text}-]` : `[+${text}+]`))
    .join('')
}

describe('the marks between two texts', () => {
  it.each([
    ['write to me at a@b.de now', 'write to me at [EMAIL] now', 'write to me at [-a@b.de-][+[EMAIL]+] now'],
    ['one two three', 'one three', 'one [-two -]three'],
    ['', 'new', '[+new+]'],
    ['gone', '', '[-gone-]'],
    ['same', 'same', 'same'],
    ['我喜欢苹果', '我喜欢香蕉', '我喜欢[-苹果-][+香蕉+]'],
    ['a\n\n\n\nb', 'a\n\nb', 'a\n\n[-\n\n-]b'],
  ])('of %j and %j', (before, after, wanted) => {
    expect(said(markTexts(before, after))).toBe(wanted)
  })

  it('always give both texts back', () => {
    const before = 'The <b>quick</b>  fox &amp; a dog.'
    const after = 'The quick fox & a dog!'
    const pieces = markTexts(before, after)
    const side = (left: 'gone' | 'new') =>
      pieces
        .filter((piece) => piece.mark !== left)
        .map((piece) => piece.text)
        .join('')
    expect(side('new')).toBe(before)
    expect(side('gone')).toBe(after)
  })

  it('are coarse, not slow, for long texts that have nothing in common', () => {
    const before = Array.from({ length: 4000 }, (_, index) => `a${index}`).join(' ')
    const after = Array.from({ length: 4000 }, (_, index) => `b${index}`).join(' ')
    expect(markTexts(before, after).map((piece) => piece.mark)).toEqual(['gone', 'new'])
  })

  it('show what cannot be seen', () => {
    expect(visible({ mark: 'gone', text: '\u200b' })).toBe('⟨200B⟩')
    expect(visible({ mark: 'gone', text: '  ' })).toBe('··')
    expect(visible({ mark: 'gone', text: '\n' })).toBe('↵')
    expect(visible({ mark: 'gone', text: 'a b' })).toBe('a b')
    expect(visible({ mark: 'same', text: ' \u200b' })).toBe(' \u200b')
  })

  it('leave out what is far from any change', () => {
    const long = 'x'.repeat(400)
    const cut = cutSame(
      [
        { mark: 'same', text: long },
        { mark: 'new', text: '!' },
        { mark: 'same', text: long },
      ],
      10,
    )
    expect(cut[0]?.text).toBe(` … ${'x'.repeat(10)}`)
    expect(cut[2]?.text).toBe(`${'x'.repeat(10)} … `)
    expect(cutSame([{ mark: 'same', text: long }], 10)[0]?.text).toBe(long)
  })
})

describe('the marks between two rows', () => {
  it('name the fields that changed, came and went, before the others', () => {
    const fields = markRows({ id: 1, text: 'old', gone: 'x' }, { id: 1, text: 'new', quality: { total: 0.5 } })
    expect(fields.map(({ name, state }) => [name, state])).toEqual([
      ['text', 'changed'],
      ['gone', 'gone'],
      ['quality', 'new'],
      ['id', 'same'],
    ])
  })

  it('mark nothing of a row that was dropped', () => {
    expect(markRows({ text: 'it' }, null)).toEqual([
      { name: 'text', state: 'same', pieces: [{ mark: 'same', text: 'it' }] },
    ])
  })

  it('read conversations turn by turn, in both spellings', () => {
    expect(
      readable([
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
      ]),
    ).toBe('user: Hi\nassistant: Hello')
    expect(readable([{ from: 'human', value: 'Hi' }])).toBe('human: Hi')
    expect(readable([{ role: 'user', content: null }])).toContain('"role"')
    expect(readable(null)).toBe('')
  })
})
