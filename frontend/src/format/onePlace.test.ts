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
    // Keys of texts that are put together: `rule.${name}` has braces of its own.
    const find = (text: string) =>
      [...text.replaceAll(/\$\{[^{}]*\}/g, '').matchAll(texts)]
        .filter(([, given = '']) => raw.test(given))
        .map(([whole]) => whole)
    const own = Object.entries(SOURCES).flatMap(([path, text]) =>
      /\/(?:pipelines|locales)\//.test(path) ? [] : find(text).map((whole) => [path, whole]),
    )

    expect(find('t(`rule.${stop.rule}`, { step: stop.at })')).toHaveLength(1)
    expect(find('t(`rule.${stop.rule}`, { step: formatStep(stop.at) })')).toEqual([])
    expect(own, 'use formatStep').toEqual([])
  })
})
