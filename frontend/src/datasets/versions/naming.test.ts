import { describe, expect, it } from 'vitest'

import { blockersOf, findVersion, isName } from './naming'
import type { Refs, Version, VersionDetail } from './types'

const FIRST = 'a'.repeat(64)
const SECOND = `b${'a'.repeat(63)}`

function version(part: Partial<Version> = {}): Version {
  return {
    id: FIRST,
    dataset: 'ds_1',
    number: 1,
    parents: [],
    message: '',
    author: 'x',
    tree: 't',
    splits: { train: 2 },
    row_count: 2,
    size_bytes: 10,
    origin: 'import',
    task: null,
    branches: [],
    tags: [],
    created_at: '2026-01-01T00:00:00Z',
    ...part,
  }
}

function detail(part: Partial<VersionDetail> = {}): VersionDetail {
  return { ...version(), format: 'text', format_columns: {}, columns: [], provenance: {}, uses: [], ...part }
}

const refs: Refs = {
  branches: [{ name: 'main', version: SECOND, moved_at: '2026-01-01T00:00:00Z' }],
  tags: [{ name: 'v1', version: FIRST, moved_at: '2026-01-01T00:00:00Z' }],
}

describe('a version', () => {
  it.each([
    ['main', SECOND],
    ['v1', FIRST],
    [FIRST.slice(0, 8), FIRST],
    [SECOND, SECOND],
    ['a', null],
    ['unknown-name', null],
  ])('called %s is found', (revision, wanted) => {
    expect(findVersion(revision, refs, [version(), version({ id: SECOND })])).toBe(wanted)
  })

  it('is not guessed where the digits fit several', () => {
    expect(findVersion('a'.repeat(8), null, [version(), version({ id: `${'a'.repeat(8)}c` })])).toBeNull()
  })

  it('says what keeps it from being deleted', () => {
    const use = { kind: 'job', id: 'job_1', name: 'run', state: 'running', is_unfinished: true } as const
    const it = detail({ branches: ['dev'], tags: ['v1'], uses: [use, { ...use, id: 'job_2', is_unfinished: false }] })
    expect(blockersOf(it, [version({ id: SECOND, number: 2, parents: [FIRST] })])).toEqual([
      { kind: 'branch', name: 'dev' },
      { kind: 'tag', name: 'v1' },
      { kind: 'child', number: 2 },
      { kind: 'use', name: 'run' },
    ])
    expect(blockersOf(detail(), [version()])).toEqual([])
  })
})

describe('a name', () => {
  it.each([
    ['v1.2_a-b', true],
    ['', false],
    ['-x', false],
    ['a b', false],
    ['标签', false],
    ['a/b', false],
    ['x'.repeat(101), false],
  ])('%j can be given: %s', (text, wanted) => {
    expect(isName(text)).toBe(wanted)
  })
})
