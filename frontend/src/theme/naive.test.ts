import { describe, expect, it } from 'vitest'

import { naiveOverrides } from './naive'
import { dark, light } from './palettes'

describe('a chosen segment', () => {
  it.each([
    ['light', light],
    ['dark', dark],
  ])('is told by its text and its edge in the %s theme, not by a fill', (_, palette) => {
    expect(naiveOverrides(palette).Radio).toEqual({
      buttonColorActive: palette.surface,
      buttonTextColorActive: palette.accent,
    })
  })
})
