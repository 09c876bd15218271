import { describe, expect, it } from 'vitest'

import { messages } from '@/i18n/messages'
import { withSetup } from '@/testing/withSetup'

import { useTextOr } from './useTextOr'

describe('a text that may not be there', () => {
  it('has a singular', () => {
    const { it: textOr, end } = withSetup(() => useTextOr())

    expect(textOr('datasets.tasks.count.files', '', { n: '1' }, 1)).toBe('1 file')
    expect(textOr('datasets.tasks.count.files', '', { n: '2' }, 2)).toBe('2 files')
    expect(textOr('datasets.tasks.count.nothing', 'fallback', { n: '2' }, 2)).toBe('fallback')
    end()
  })
  it('names a place in the queue the same for jobs and evaluations', () => {
    expect(messages.en.jobs.progress.queue).toBe(messages.en.evaluations.progress.queue)
    expect(messages.zh.jobs.progress.queue).toBe(messages.zh.evaluations.progress.queue)
  })
})
