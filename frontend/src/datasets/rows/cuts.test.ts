import { describe, expect, it } from 'vitest'

import { cutRows } from './cuts'

describe('cutRows', () => {
  it('names the columns of each row once', () => {
    const cut = [
      { row: 2, column: 'text' },
      { row: 2, column: 'messages' },
      { row: 5, column: 'text' },
    ]
    expect(cutRows(cut)).toEqual([
      { row: 2, columns: ['text', 'messages'] },
      { row: 5, columns: ['text'] },
    ])
  })

  it('says nothing of whole rows', () => {
    expect(cutRows([])).toEqual([])
  })
})
