import { afterEach, describe, expect, it, vi } from 'vitest'
import { computed, ref } from 'vue'

import { withSetup } from '@/testing/withSetup'

import { DEFAULTS, type Endpoint, type Settings, type Token } from './types'
import { useConversation } from './useConversation'

interface Asked {
  path: string
  prompt?: number[] | string
  messages?: { content: string }[]
  continue_final_message?: boolean
  return_token_ids?: boolean
}

afterEach(() => {
  vi.unstubAllGlobals()
})

function chat(content: string, ids: number[]) {
  const tokens =
    content === '' ? [] : [{ token: content, logprob: -1, top_logprobs: [{ token: content, logprob: -1 }] }]
  return { choices: [{ delta: { content }, logprobs: { content: tokens }, token_ids: ids, finish_reason: null }] }
}

/** "the!", where a tokenizer would read "the" as one token; the "!" comes after a token that shows nothing. */
const CHAT = [
  { prompt_token_ids: [1, 2, 3], choices: [{ delta: { role: 'assistant', content: '' } }] },
  chat('th', [10]),
  chat('e', [11]),
  chat('', [12]),
  chat('!', [13]),
]
const MORE = [
  {
    choices: [
      {
        text: ' end',
        logprobs: { tokens: [' end'], token_logprobs: [-0.5], top_logprobs: [{ x: -2, ' end': -0.5 }] },
        token_ids: [20],
        finish_reason: 'stop',
      },
    ],
  },
]

/** Of texts that are no answer's tokens. */
const VOCABULARY: Record<string, number[]> = { 'e!': [30], other: [40, 41] }

/** A conversation with a model that writes these; what it was asked is kept. */
function converse() {
  const asked: Asked[] = []
  vi.stubGlobal('fetch', (path: string, { body }: { body: string }) => {
    const request = JSON.parse(body) as Omit<Asked, 'path'>
    asked.push({ path, ...request })
    if (path === '/v1/tokenize')
      return Promise.resolve(new Response(JSON.stringify({ tokens: VOCABULARY[String(request.prompt)] })))
    const events = path === '/v1/completions' ? MORE : CHAT
    return Promise.resolve(
      new Response(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`),
    )
  })
  const settings = ref<Settings>({ ...DEFAULTS })
  const { it: conversation, end } = withSetup(() =>
    useConversation({
      model: ref('sft'),
      prompts: ref(['Hi']),
      settings,
      context: ref([]),
      endpoint: computed(() => ({ state: 'ready' }) as Endpoint),
      canStart: ref(true),
      isText: ref(false),
      start: () => Promise.resolve(),
      explain: ({ message }) => message,
    }),
  )
  const tokens = (): readonly Token[] => conversation.turns[0]?.[0]?.tokens ?? []
  return { conversation, settings, asked, tokens, end }
}

describe('an answer that goes on from a token', () => {
  it('goes on from the very tokens that the model wrote, and once more from there', async () => {
    const { conversation, asked, tokens, end } = converse()
    await conversation.answerTo(0)
    expect(tokens().map(({ text, ids }) => [text, ids])).toEqual([
      ['th', [10]],
      ['e', [11]],
      ['!', [12, 13]],
    ])

    await conversation.goOn(0, 0, tokens().slice(0, 2))
    expect(asked[1]).toMatchObject({ path: '/v1/completions', prompt: [1, 2, 3, 10, 11], return_token_ids: true })
    expect(asked[1]?.messages).toBeUndefined()
    expect(tokens().map(({ text }) => text)).toEqual(['th', 'e', ' end'])
    expect(tokens()[2]?.top.map(({ text }) => text)).toEqual([' end', 'x'])

    await conversation.goOn(0, 0, tokens())
    expect(asked[2]?.prompt).toEqual([1, 2, 3, 10, 11, 20])
    end()
  })

  it('goes on from an alternative by its own token, and from there once more', async () => {
    const { conversation, asked, tokens, end } = converse()
    await conversation.answerTo(0)

    await conversation.goOn(0, 0, [...tokens().slice(0, 1), { text: 'e!', logprob: -2, top: [] }])
    expect(asked[1]).toMatchObject({ path: '/v1/tokenize', prompt: 'e!' })
    expect(asked[2]).toMatchObject({ path: '/v1/completions', prompt: [1, 2, 3, 10, 30] })

    await conversation.goOn(0, 0, tokens())
    expect(asked[3]).toMatchObject({ path: '/v1/completions', prompt: [1, 2, 3, 10, 30, 20] })
    end()
  })

  it('goes on from its text where the tokens are not known, or were written to another prompt', async () => {
    const { conversation, settings, asked, tokens, end } = converse()
    await conversation.answerTo(0)

    await conversation.goOn(0, 0, [{ text: 'other', logprob: null, top: [] }])
    expect(asked[1]).toMatchObject({ path: '/v1/tokenize', prompt: 'other' })
    expect(asked[2]).toMatchObject({ path: '/v1/chat/completions', continue_final_message: true })
    expect(asked[2]?.messages?.at(-1)?.content).toBe('other')

    await conversation.answerTo(0)
    settings.value = { ...settings.value, system: 'Be short.' }
    await conversation.goOn(0, 0, tokens().slice(0, 1))
    expect(asked[4]).toMatchObject({ path: '/v1/chat/completions', continue_final_message: true })
    expect(asked[4]?.messages?.map(({ content }) => content)).toEqual(['Be short.', 'Hi', 'th'])
    end()
  })
})
