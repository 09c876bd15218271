import { describe, expect, it } from 'vitest'

const SOURCES = import.meta.glob<string>(['../**/*.ts', '../**/*.vue', '!../**/*.test.ts', '!./**'], {
  query: '?raw',
  import: 'default',
  eager: true,
})

describe('numbers', () => {
  it('become text in one place', () => {
    const own = Object.entries(SOURCES).filter(([, text]) =>
      /\.(?:toFixed|toPrecision|toExponential|toLocaleString)\(|new Intl\.(?:Number|DateTime)Format/.test(text),
    )

    expect(Object.keys(SOURCES).length).toBeGreaterThan(100)
    expect(
      own.map(([path]) => path),
      'use src/format instead',
    ).toEqual([])
  })
})
