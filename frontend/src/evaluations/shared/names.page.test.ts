import { describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import { useNames } from './names'

describe('the name of a benchmark', () => {
  it('is that of the dataset that it was measured on, with a label of its own', () => {
    const {
      it: { labelName },
      end,
    } = withSetup(useNames)

    const tickets = { id: 'ds_1', name: 'Tickets', version: '1a2b3c4d5e6f', is_deleted: false }
    expect(labelName('custom', 'custom', tickets)).toBe('Tickets @ 1a2b3c4d')
    expect(labelName('custom-2', 'custom', { ...tickets, version: null })).toBe('Tickets')
    expect(labelName('hard', 'custom', { ...tickets, version: null })).toBe('Tickets · hard')
    expect(labelName('custom', 'custom', { ...tickets, is_deleted: true })).toBe('Tickets (deleted) @ 1a2b3c4d')
    expect(labelName('custom', 'custom', { ...tickets, name: null, version: null, is_deleted: true })).toBe(
      'Deleted dataset',
    )
    expect(labelName('custom', 'custom')).toBe('Custom dataset')
    expect(labelName('gsm8k', 'gsm8k')).toBe('GSM8K')
    end()
  })
})
