import { describe, expect, it } from 'vitest'

import { downloadUrl } from './download'

describe('the address of a download', () => {
  it('names split, kind of file and version', () => {
    expect(downloadUrl({ dataset: 'ds_1', version: null, split: 'train', form: 'csv' })).toBe('/api/v1/datasets/ds_1/download?split=train&form=csv')
    expect(downloadUrl({ dataset: 'ds_1', version: 'a/b', split: 'a b&c', form: 'jsonl' })).toBe('/api/v1/datasets/ds_1/download?split=a+b%26c&form=jsonl&version=a%2Fb')
  })
})
