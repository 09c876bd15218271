import { describe, expect, it } from 'vitest'

import { emptyFields, nameOfFile, nameOfSource, sourceOf } from './names'

describe('the name of a dataset', () => {
  it.each([
    ['sums.jsonl', 'sums'],
    ['sums.v2.JSONL.gz', 'sums.v2'],
    ['notes.txt', 'notes'],
    ['.jsonl', '.jsonl'],
    ['rows', 'rows'],
    [`${'x'.repeat(200)}.csv`, 'x'.repeat(120)],
  ])('of the file %s is %s', (file, name) => {
    expect(nameOfFile(file)).toBe(name)
  })

  it('of another source is the last part of where it is', () => {
    expect(nameOfSource({ kind: 'path', path: 'starter/data/sft.jsonl' })).toBe('sft')
    expect(nameOfSource({ kind: 'hub', hub: 'huggingface', repo_id: 'owner/sums', revision: 'main', under: '' })).toBe(
      'sums',
    )
    expect(nameOfSource({ kind: 's3', url: 's3://bucket/folder/' })).toBe('folder')
    expect(nameOfSource(null)).toBe('')
  })
})

describe('the source that a form describes', () => {
  it('is none while a needed field is empty or wrong', () => {
    expect(sourceOf('path', { ...emptyFields(), path: '  ' })).toBeNull()
    expect(sourceOf('hub', emptyFields())).toBeNull()
    expect(sourceOf('s3', { ...emptyFields(), url: 'https://bucket/x' })).toBeNull()
    expect(sourceOf('s3', { ...emptyFields(), url: 's3://' })).toBeNull()
  })

  it('has its fields without white space around them', () => {
    expect(sourceOf('hub', { ...emptyFields(), repo: ' owner/sums ', revision: '', under: ' data/ ' })).toEqual({
      kind: 'hub',
      hub: 'huggingface',
      repo_id: 'owner/sums',
      revision: 'main',
      under: 'data/',
    })
    expect(sourceOf('hub', { ...emptyFields(), hub: 'modelscope', repo: 'owner/sums' })).toMatchObject({
      hub: 'modelscope',
      revision: 'master',
    })
    expect(sourceOf('path', { ...emptyFields(), path: ' a/b ' })).toEqual({ kind: 'path', path: 'a/b' })
    expect(sourceOf('s3', { ...emptyFields(), url: 's3://b/k' })).toEqual({ kind: 's3', url: 's3://b/k' })
  })
})
