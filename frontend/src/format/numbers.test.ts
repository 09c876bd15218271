import { describe, expect, it } from 'vitest'

import {
  formatElapsedTick,
  formatFixed,
  formatMoment,
  formatNumber,
  formatPercent,
  formatSigned,
  formatSignedPercent,
  formatStep,
  formatStepTick,
  formatTick,
  roundTo,
  timeUnit,
} from './numbers'

describe('numbers in tables and tooltips', () => {
  it.each([
    [0, '0'],
    [0.123456, '0.1235'],
    [0.5, '0.5'],
    [12.3456, '12.35'],
    [0.99998, '0.99998'],
    [3, '3'],
    [-0.000012345, '−1.234e-5'],
    [1e-6, '1e-6'],
    [123456.7, '123\u202f457'],
    [-1234567, '−1\u202f234\u202f567'],
    [3.2e11, '3.2e11'],
  ])('shows %d as %s', (value, text) => {
    expect(formatNumber(value)).toBe(text)
  })

  it('names what is not a number', () => {
    expect(formatNumber(NaN)).toBe('NaN')
    expect(formatNumber(Infinity)).toBe('+∞')
    expect(formatNumber(-Infinity)).toBe('−∞')
    expect(formatNumber(null)).toBe('–')
  })
})

describe('labels of axes', () => {
  it.each([
    [0, '0'],
    [0.25, '0.25'],
    [1500, '1.5k'],
    [20_000_000, '20M'],
    [-2500, '−2.5k'],
    [0.99996, '0.99996'],
    [12_345, '12.345k'],
    [0.00001, '1e-5'],
    [100, '100'],
  ])('shortens %d to %s', (value, text) => {
    expect(formatTick(value)).toBe(text)
  })

  it.each([
    [45, 1, '45s'],
    [10, 60, '10m'],
    [2.5, 3600, '2.5h'],
  ] as const)('writes %d units of %d seconds as %s', (amount, unit, text) => {
    expect(formatElapsedTick(amount, unit)).toBe(text)
  })

  it.each([
    [100, 1],
    [900, 60],
    [20_000, 3600],
  ])('counts %d seconds in units of %d', (seconds, unit) => {
    expect(timeUnit(seconds)).toBe(unit)
  })
})

describe('steps on an axis', () => {
  it.each([
    [140, '140'],
    [12_500, '12\u202f500'],
    [1_250_000, '1.25M'],
  ])('shows %d as %s', (step, text) => {
    expect(formatStepTick(step)).toBe(text)
  })
})

describe('percentages', () => {
  it.each([
    [0, '0%'],
    [0.034, '3.4%'],
    [0.5, '50%'],
    [0.999, '100%'],
  ])('shows the ratio %d as %s', (value, text) => {
    expect(formatPercent(value)).toBe(text)
  })
})

describe('formatMoment', () => {
  const moment = new Date(2026, 4, 31, 14, 5, 30).getTime()

  it.each([
    [undefined, '05-31 14:05'],
    [7 * 86_400_000, '05-31 14:05'],
    [3_600_000, '14:05'],
    [60_000, '14:05:30'],
  ])('tells as much as an axis of %s ms needs', (span, text) => {
    expect(formatMoment(moment, span)).toBe(text)
  })
})

describe('differences', () => {
  it('have their sign in front', () => {
    expect([0.03, -0.5, 0].map((value) => formatSigned(value))).toEqual(['+0.03', '−0.5', '±0'])
    expect([0.025, -0.5, 0].map(formatSignedPercent)).toEqual(['+2.5%', '−50.0%', '±0.0%'])
  })
})

describe('rounding', () => {
  it('keeps as many decimals or digits as are asked for', () => {
    expect([formatFixed(0.5, 2), roundTo(0.123456, 3), roundTo(123456, 2)]).toEqual(['0.50', 0.123, 120000])
  })
})

describe('a step', () => {
  it('has its thousands apart, and a place between two steps', () => {
    expect([140, 12_500, 1_250_000, 12_500.5].map(formatStep)).toEqual([
      '140',
      '12\u202f500',
      '1\u202f250\u202f000',
      '12\u202f500.5',
    ])
  })
})
