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

  it('of steps are written alike in every text', () => {
    const texts = /\bt\((?:[^(){}]|\([^()]*\))*?\{([^{}]*)\}/g
    // In names, where a space between thousands would be in the way, they are plain: `String(…)`.
    const raw = /(?:^|,)\s*(?:step|lastStep|bestStep)\s*(?:$|,|:(?!.*(?:formatStep|String)\())/s
    const own = Object.entries(SOURCES).flatMap(([path, text]) =>
      /\/(?:pipelines|locales)\//.test(path)
        ? []
        : [...text.matchAll(texts)].filter(([, given = '']) => raw.test(given)).map(([whole]) => [path, whole]),
    )

    expect(own, 'use formatStep').toEqual([])
  })
})
