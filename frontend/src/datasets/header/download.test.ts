import { describe, expect, it } from 'vitest'

import { choices, chosen, downloadUrl } from './download'

describe('the address of a download', () => {
  it('names split, kind of file and version', () => {
    expect(downloadUrl({ dataset: 'ds_1', version: null, split: 'train', form: 'csv' })).toBe(
      '/api/v1/datasets/ds_1/download?split=train&form=csv',
    )
    expect(downloadUrl({ dataset: 'ds_1', version: 'a/b', split: 'a b&c', form: 'jsonl' })).toBe(
      '/api/v1/datasets/ds_1/download?split=a+b%26c&form=jsonl&version=a%2Fb',
    )
  })
})

describe('what can be downloaded', () => {
  const offer = (splits: Record<string, number>) =>
    choices(
      splits,
      (form) => form,
      (name, rows) => `${name} ${rows}`,
    )

  it('is a kind of file, and a split where there are several', () => {
    expect(offer({ train: 2 }).map((one) => one.key)).toEqual(['jsonl:train', 'csv:train', 'parquet:train'])
    expect(offer({ train: 2, 'a:b': 1 }).map((one) => one.label)).toEqual(['train 2', 'a:b 1'])
    expect(offer({})).toEqual([])
  })

  it('is known by its key', () => {
    expect(chosen('csv:a:b')).toEqual({ form: 'csv', split: 'a:b' })
  })
})
