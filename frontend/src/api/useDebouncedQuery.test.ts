import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'

import { ApiError } from './errors'
import { useDebouncedQuery } from './useDebouncedQuery'

type Ask = (question: string, signal: AbortSignal) => Promise<string>

/** The question is what a person types; an empty text asks nothing. */
function start(ask: Ask) {
  const typed = ref('')
  const scope = effectScope()
  const query = scope.run(() => useDebouncedQuery(() => (typed.value === '' ? null : typed.value), ask))
  if (query === undefined) throw new Error('the scope has ended')

  async function type(text: string, waitMs = 300): Promise<void> {
    typed.value = text
    await nextTick()
    await vi.advanceTimersByTimeAsync(waitMs)
  }

  return {
    query,
    type,
    end: () => {
      scope.stop()
    },
  }
}

const failure = new ApiError({ code: 'internal_error', message: 'no', status: 500 })

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

describe('a question to the API while it is being typed', () => {
  it('is asked once, a moment after the last change', async () => {
    const ask = vi.fn<Ask>((question) => Promise.resolve(`about ${question}`))
    const { query, type, end } = start(ask)

    await type('a', 100)
    await type('ab', 100)
    await type('abc')

    expect(ask.mock.calls.map(([question]) => question)).toEqual(['abc'])
    expect(query.answer.value).toBe('about abc')
    end()
  })

  it('says from a change on that what is shown is of an earlier question', async () => {
    const { query, type, end } = start((question) => Promise.resolve(`about ${question}`))
    await type('a')
    expect([query.isStale.value, query.isAsking.value]).toEqual([false, false])

    await type('b', 0)

    expect(query.answer.value).toBe('about a')
    expect([query.isStale.value, query.isAsking.value]).toEqual([true, true])
    end()
  })

  it('does not take the old answer for a current one when the new question failed', async () => {
    const ask = vi
      .fn<Ask>()
      .mockResolvedValueOnce('about a')
      .mockRejectedValueOnce(failure)
      .mockResolvedValueOnce('about b')
    const { query, type, end } = start(ask)
    await type('a')

    await type('b')
    expect(query.error.value).toBe(failure)
    expect([query.isStale.value, query.isAsking.value]).toEqual([true, false])

    query.retry()
    await vi.advanceTimersByTimeAsync(300)
    expect([query.answer.value, query.error.value, query.isStale.value]).toEqual(['about b', null, false])
    end()
  })

  it('drops the answer to a question that is no longer asked, and breaks off its request', async () => {
    const answers = new Map<string, (answer: string) => void>()
    const signals = new Map<string, AbortSignal>()
    const { query, type, end } = start((question, signal) => {
      signals.set(question, signal)
      return new Promise((resolve) => answers.set(question, resolve))
    })
    await type('a')
    await type('b')

    answers.get('b')?.('about b')
    answers.get('a')?.('about a')
    await vi.advanceTimersByTimeAsync(0)

    expect(signals.get('a')?.aborted).toBe(true)
    expect(query.answer.value).toBe('about b')
    end()
  })

  it('is forgotten when there is nothing to ask any more', async () => {
    const { query, type, end } = start((question) => Promise.resolve(`about ${question}`))
    await type('a')

    await type('')

    expect([query.answer.value, query.isStale.value, query.isAsking.value]).toEqual([null, false, false])
    end()
  })

  it('is not asked after its page is gone', async () => {
    const ask = vi.fn<Ask>(() => Promise.resolve(''))
    const { type, end } = start(ask)
    await type('a', 100)

    end()
    await vi.advanceTimersByTimeAsync(1000)

    expect(ask).not.toHaveBeenCalled()
  })
})
