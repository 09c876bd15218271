import { describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import { useNames } from './names'

describe('the name of a benchmark', () => {
  it('is that of the dataset that it was measured on, with a label of its own', () => {
    const { it: { labelName }, end } = withSetup(useNames)

    expect(labelName('custom', 'custom', 'Tickets')).toBe('Tickets')
    expect(labelName('custom-2', 'custom', 'Tickets')).toBe('Tickets')
    expect(labelName('hard', 'custom', 'Tickets')).toBe('Tickets · hard')
    expect(labelName('custom', 'custom')).toBe('Custom dataset')
    expect(labelName('gsm8k', 'gsm8k')).toBe('GSM8K')
    end()
  })
})
