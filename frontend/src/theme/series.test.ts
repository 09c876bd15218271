import { describe, expect, it } from 'vitest'

import { dark, light } from './palettes'

function linear(color: string): [number, number, number] {
  const part = (at: number) => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return [part(1), part(3), part(5)]
}

function contrast(one: string, other: string): number {
  const [a, b] = [one, other]
    .map((color) => linear(color))
    .map(([r, g, blue]) => 0.2126 * r + 0.7152 * g + 0.0722 * blue) as [number, number]
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
}

/** As deuteranopes and protanopes see it: Viénot, Brettel and Mollon (1999), in linear RGB. */
const BLIND: readonly (readonly (readonly [number, number, number])[])[] = [
  [
    [0.29275, 0.70725, 0],
    [0.29275, 0.70725, 0],
    [-0.02234, 0.02234, 1],
  ],
  [
    [0.11238, 0.88762, 0],
    [0.11238, 0.88762, 0],
    [0.00401, -0.00401, 1],
  ],
]

function seen(color: string, matrix: (typeof BLIND)[number]): number[] {
  const rgb = linear(color)
  return matrix.map((row) => Math.cbrt(Math.max(0, row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2])))
}

describe.each([
  ['light', light],
  ['dark', dark],
] as const)('the colours of series, %s', (_, palette) => {
  it('are none of the state of a run that may stand beside them, and stand out from the card', () => {
    expect(palette.series).not.toContain(palette.succeeded)
    expect(palette.series.filter((color) => contrast(color, palette.surface) < 3)).toEqual([])
    expect(new Set(palette.series).size).toBe(8)
  })

  it('differ from their neighbours, also for those who do not tell red from green', () => {
    const near = palette.series.slice(1).flatMap((color, at) =>
      BLIND.flatMap((matrix) => {
        const [one, other] = [seen(palette.series[at] ?? '', matrix), seen(color, matrix)]
        const distance = Math.hypot(...one.map((value, index) => value - (other[index] ?? 0)))
        return distance < 0.25 ? [`${palette.series[at] ?? ''} ${color} ${distance.toFixed(3)}`] : []
      }),
    )
    expect(near).toEqual([])
  })
})
