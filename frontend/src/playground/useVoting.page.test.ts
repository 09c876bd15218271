import { afterEach, describe, expect, it, vi } from 'vitest'
import { createPinia } from 'pinia'
import { nextTick, ref, shallowRef } from 'vue'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { DEFAULTS } from './types'
import { useVoting } from './useVoting'

vi.mock('@/ui/useToast', () => ({ useToast: () => ({ failure: vi.fn(), success: vi.fn() }) }))

afterEach(() => {
  vi.restoreAllMocks()
})

function part(model: string, position: number, text: string) {
  const messages = [{ role: 'user' as const, content: '1+1=' }]
  return { hasAnswer: true, model, position, voted: () => ({ model, text, messages }) }
}

describe('voting', () => {
  it('is on the columns as they stand, whatever order their refs have', async () => {
    const bodies: unknown[] = []
    answering('POST', ({ body }) => {
      bodies.push(body)
      return answer(201, { id: 'vot_1' })
    })
    const parts = shallowRef([part('base', 1, '3'), part('sft', 0, '2')])
    const { it: voting, end } = withSetup(
      () => useVoting({ parts, prompts: ref(['1+1=']), settings: ref({ ...DEFAULTS }), isBlind: ref(true) }),
      (app) => app.use(createPinia()),
    )

    await voting.vote('a')
    await voting.vote('b')

    expect(bodies).toHaveLength(1)
    expect(bodies[0]).toMatchObject({ a: { model: 'sft', text: '2' }, b: { model: 'base' }, verdict: 'a', is_blind: true })
    expect([voting.given.value, voting.version.value]).toEqual(['a', 1])
    parts.value = [part('base', 1, '4'), part('sft', 0, '2')]
    await nextTick()
    expect(voting.given.value).toBeNull()
    end()
  })

  it('waits for two whole answers', () => {
    const parts = shallowRef([part('base', 0, '3'), { ...part('sft', 1, '2'), hasAnswer: false }])
    const { it: voting, end } = withSetup(() => useVoting({ parts, prompts: ref(['1+1=']), settings: ref({ ...DEFAULTS }), isBlind: ref(false) }))

    expect(voting.sides.value).toBeNull()
    expect(voting.isComparable.value).toBe(false)
    end()
  })
})
