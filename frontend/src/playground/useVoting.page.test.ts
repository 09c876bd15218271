import { NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick, ref, shallowRef } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { DEFAULTS } from './types'
import { useVoting } from './useVoting'

afterEach(() => {
  vi.restoreAllMocks()
})

/** The composable in an app that can show notices. */
function startVoting(options: Parameters<typeof useVoting>[0]) {
  const made: ReturnType<typeof useVoting>[] = []
  const page = {
    setup: () => {
      made.push(useVoting(options))
      return () => null
    },
  }
  const { end } = mount({ setup: () => () => h(NMessageProvider, () => h(page)) }, {}, (app) => app.use(createPinia()))
  const [voting] = made
  if (voting === undefined) throw new Error('the setup did not run')
  return { voting, end }
}

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
    const { voting, end } = startVoting({
      parts,
      prompts: ref(['1+1=']),
      settings: ref({ ...DEFAULTS }),
      isBlind: ref(true),
    })

    await voting.vote('a')
    await voting.vote('b')

    expect(bodies).toHaveLength(1)
    expect(bodies[0]).toMatchObject({
      a: { model: 'sft', text: '2' },
      b: { model: 'base' },
      verdict: 'a',
      is_blind: true,
    })
    expect([voting.given.value, voting.version.value]).toEqual(['a', 1])
    parts.value = [part('base', 1, '4'), part('sft', 0, '2')]
    await nextTick()
    expect(voting.given.value).toBeNull()
    end()
  })

  it('waits for two whole answers', () => {
    const parts = shallowRef([part('base', 0, '3'), { ...part('sft', 1, '2'), hasAnswer: false }])
    const { voting, end } = startVoting({
      parts,
      prompts: ref(['1+1=']),
      settings: ref({ ...DEFAULTS }),
      isBlind: ref(false),
    })

    expect(voting.sides.value).toBeNull()
    expect(voting.isComparable.value).toBe(false)
    end()
  })

  it('is on what models wrote, not on what a person made of it', async () => {
    const asked = vi.fn(() => answer(201, { id: 'vot_1' }))
    answering('POST', asked)
    const corrected = { ...part('sft', 1, '2'), voted: () => ({ ...part('sft', 1, '2').voted(), isEdited: true }) }
    const { voting, end } = startVoting({
      parts: shallowRef([part('base', 0, '3'), corrected]),
      prompts: ref(['1+1=']),
      settings: ref({ ...DEFAULTS }),
      isBlind: ref(false),
    })

    await voting.vote('b')

    expect([voting.isComparable.value, voting.isEdited.value]).toEqual([true, true])
    expect(asked).not.toHaveBeenCalled()
    end()
  })
})
