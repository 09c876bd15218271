import { describe, expect, it } from 'vitest'

import { chooseSplit, resolveRevision, splitsShown, trainingQuery } from './revision'

const refs = {
  branches: [{ name: 'main', version: 'a'.repeat(64), moved_at: '' }],
  tags: [{ name: 'v1', version: 'b'.repeat(64), moved_at: '' }],
}

describe('the version that a name means', () => {
  it('is the tip of a branch or what a tag was put on', () => {
    expect(resolveRevision('main', refs)).toBe('a'.repeat(64))
    expect(resolveRevision('v1', refs)).toBe('b'.repeat(64))
  })

  it('is the name itself where it is none: an id, or not known yet', () => {
    expect(resolveRevision('cccccccc', refs)).toBe('cccccccc')
    expect(resolveRevision('main', null)).toBe('main')
  })
})

describe('what a job from the page of a dataset reads', () => {
  it('is the version shown, and the split where it is none of the usual', () => {
    expect(trainingQuery('ds_a', null, null)).toEqual({ dataset: 'ds_a' })
    expect(trainingQuery('ds_a', 'cccccccc', { split: 'train' })).toEqual({ dataset: 'ds_a', version: 'cccccccc' })
    expect(trainingQuery('ds_a', 'v1', { split: 'hard' })).toEqual({ dataset: 'ds_a', version: 'v1', split: 'hard' })
  })

  it('is never a split that was only looked at to validate', () => {
    expect(trainingQuery('ds_a', null, { split: 'validation' })).toEqual({ dataset: 'ds_a' })
    expect(trainingQuery('ds_a', null, { split: 'test' })).toEqual({ dataset: 'ds_a' })
  })
})

describe('the split that is shown', () => {
  it('is the one asked for, else train, else the first', () => {
    expect(chooseSplit({ test: 1, train: 2 }, 'test')).toBe('test')
    expect(chooseSplit({ test: 1, train: 2 }, 'gone')).toBe('train')
    expect(chooseSplit({ validation: 1, test: 2 }, null)).toBe('validation')
    expect(chooseSplit({}, 'train')).toBeNull()
  })
})

describe('the splits that are offered', () => {
  const newest = { train: 3 }

  it('are those of the version that is shown', () => {
    expect(splitsShown(newest, null, null)).toEqual(newest)
    expect(splitsShown(newest, 'v1', { splits: { test: 1 } })).toEqual({ test: 1 })
  })

  it('are not known before the version is read', () => {
    expect(splitsShown(newest, 'v1', null)).toBeNull()
  })
})
