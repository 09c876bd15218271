import { describe, expect, it } from 'vitest'

import { shadeOf, spell } from './logprob'
import { type CallPiece, joinCalls, readEvent, readEvents, spellMessages } from './stream'

function chunk(content: string, tokens: { token: string; logprob: number }[], ending: string | null = null): string {
  const told = tokens.map((token) => ({ ...token, top_logprobs: [token, { token: 'other', logprob: -3 }] }))
  return JSON.stringify({ choices: [{ delta: { content }, logprobs: { content: told }, finish_reason: ending }] })
}

async function collect(...parts: string[]): Promise<string[]> {
  const body = new Blob(parts).stream()
  const found = []
  for await (const data of readEvents(body)) found.push(data)
  return found
}

describe('a streamed answer', () => {
  it('is read event by event, wherever the network cuts it', async () => {
    expect(await collect('data: {"a":', '1}\n\n: still here\n\nda', 'ta: [DONE]\n\n')).toEqual(['{"a":1}', '[DONE]'])
  })

  it('brings tokens with their probabilities and the likeliest others', () => {
    const { tokens, ending } = readEvent(
      chunk(
        '42',
        [
          { token: '4', logprob: -0.1 },
          { token: '2', logprob: -2 },
        ],
        'stop',
      ),
    )

    expect(tokens.map(({ text, logprob }) => [text, logprob])).toEqual([
      ['4', -0.1],
      ['2', -2],
    ])
    expect(tokens[0]?.top).toHaveLength(2)
    expect(ending).toBe('stop')
  })

  it('shows the text where tokens spell something else', () => {
    expect(readEvent(chunk('é', [{ token: '\uFFFD', logprob: -1 }])).tokens.map(({ text }) => text)).toEqual(['é'])
    expect(readEvent(chunk('', [{ token: '<|im_end|>', logprob: -1 }])).tokens).toEqual([])
  })

  it('says which weights write it', () => {
    const choices = [{ delta: { content: '2' } }]

    expect(readEvent(JSON.stringify({ model: 'sft-2', choices })).model).toBe('sft-2')
    expect(readEvent(JSON.stringify({ choices })).model).toBeNull()
  })

  it('brings calls of tools piece by piece', () => {
    const event = (...calls: unknown[]) =>
      JSON.stringify({ choices: [{ delta: { tool_calls: calls }, finish_reason: null }] })
    const pieces = [
      event({ index: 0, id: 'call_a', function: { name: 'weather', arguments: '' } }),
      event(
        { index: 0, function: { arguments: '{"city": ' } },
        { index: 1, function: { name: 'time', arguments: '{}' } },
      ),
      event({ index: 0, function: { arguments: '"Oslo"}' } }),
    ].flatMap((data): CallPiece[][] => [readEvent(data).calls])

    const calls = pieces.reduce<ReturnType<typeof joinCalls>>(joinCalls, [])

    expect(calls).toEqual([
      { id: 'call_a', name: 'weather', arguments: '{"city": "Oslo"}' },
      // One that came without an id still needs one: its result names it.
      { id: 'call_1', name: 'time', arguments: '{}' },
    ])
  })

  it('of a model without a chat template brings the same', () => {
    const logprobs = {
      tokens: ['4', '2'],
      token_logprobs: [-0.1, -2],
      top_logprobs: [{ 4: -0.1, other: -3 }, null],
      text_offset: [0, 1],
    }
    const event = (text: string, ending: string | null) =>
      JSON.stringify({ choices: [{ text, logprobs, finish_reason: ending }] })

    expect(readEvent(event('42', 'length'))).toEqual({
      tokens: [
        {
          text: '4',
          logprob: -0.1,
          top: [
            { text: '4', logprob: -0.1 },
            { text: 'other', logprob: -3 },
          ],
        },
        { text: '2', logprob: -2, top: [] },
      ],
      calls: [],
      ending: 'length',
      hidden: [],
      promptIds: null,
      model: null,
    })
    expect(readEvent('{"choices": [], "usage": {}}').tokens).toEqual([])
    expect(readEvent('{"choices": [{"text": "", "prompt_token_ids": [7, 8]}]}').promptIds).toEqual([7, 8])
    expect(() => readEvent('{"error": {"message": "Gone.", "code": "engine_lost"}}')).toThrowError(
      expect.objectContaining({ code: 'engine_lost' }),
    )
    expect(
      spellMessages([
        { role: 'system', content: 'Sums:' },
        { role: 'user', content: '1+1=' },
        { role: 'assistant', content: '2' },
        { role: 'user', content: '2+2=' },
      ]),
    ).toBe('Sums:\n\n1+1=2\n\n2+2=')
  })

  it('raises what the platform says went wrong in its middle', () => {
    const said = JSON.stringify({ error: { message: 'The engine ended.', code: 'engine_lost' } })

    expect(() => readEvent(said)).toThrowError(
      expect.objectContaining({ code: 'engine_lost', message: 'The engine ended.' }),
    )
  })
})

describe('the colour of a token', () => {
  it('is stronger the less sure the model was', () => {
    expect([0, -0.3, -0.8, -1.8, -5].map(shadeOf)).toEqual([0, 1, 2, 3, 4])
    expect(shadeOf(null)).toBe(0)
  })

  it('spells what cannot be seen', () => {
    expect(spell(' a\n')).toBe('␣a↵')
    expect(spell('')).toBe('∅')
  })
})
