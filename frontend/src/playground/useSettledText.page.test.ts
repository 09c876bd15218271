import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick, reactive } from 'vue'

import { withSetup } from '@/testing/withSetup'

import { newAnswer } from './types'
import { useSettledText } from './useSettledText'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const token = (text: string) => ({ text, logprob: null, top: [] })

describe('the text of an answer that is being written', () => {
  it('changes a few times a second, and is whole as soon as the answer is', async () => {
    const answer = reactive({ ...newAnswer(false), state: 'writing' as 'writing' | 'done' })
    const { it: shown, end } = withSetup(() => useSettledText(() => answer))
    const seen: string[] = []

    for (const text of ['a', 'b', 'c']) {
      answer.tokens.push(token(text))
      await nextTick()
      seen.push(shown.value)
      vi.advanceTimersByTime(50)
    }
    expect(seen).toEqual(['', '', 'ab'])

    answer.tokens.push(token('d'))
    answer.state = 'done'
    await nextTick()
    expect(shown.value).toBe('abcd')
    answer.state = 'writing'
    end()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is drawn more seldom the longer it is', async () => {
    const answer = reactive({ ...newAnswer(false), state: 'writing' as const, tokens: [token('x'.repeat(50_000))] })
    const { it: shown, end } = withSetup(() => useSettledText(() => answer))

    answer.tokens.push(token('y'))
    await nextTick()
    vi.advanceTimersByTime(400)
    expect(shown.value).toHaveLength(50_000)
    vi.advanceTimersByTime(200)
    expect(shown.value).toHaveLength(50_001)
    end()
  })
})
