import { describe, expect, it } from 'vitest'

import { fitText, placeLegend } from './picture'

/** Ten pixels a letter. */
const measure = (text: string) => text.length * 10

describe('the legend of a picture', () => {
  it('stands in rows that are no wider than the drawing', () => {
    const items = ['one', 'two', 'three'].map((label) => ({ label, color: '#000' }))

    const placed = placeLegend(items, 120, measure)

    expect(placed.map(({ label, x, row }) => [label, x, row])).toEqual([
      ['one', 0, 0],
      ['two', 60, 0],
      ['three', 0, 1],
    ])
  })

  it('cuts a name that is wider than the drawing', () => {
    const [item] = placeLegend([{ label: 'a very long name', color: '#000' }], 100, measure)

    expect(item?.label).toBe('a very …')
    expect(fitText('short', 100, measure)).toBe('short')
  })
})
