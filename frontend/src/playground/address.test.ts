import { describe, expect, it } from 'vitest'

import { readAddress, writeAddress } from './address'
import { DEFAULTS } from './types'

describe('the address of the playground', () => {
  it('brings back what was shared, and names only what differs', () => {
    const shared = {
      models: ['starter', 'job_abcdefghijkl:200'],
      settings: {
        system: 'Be short.',
        temperature: 0,
        topP: 0.9,
        maxTokens: 32,
        seed: null,
        format: 'schema' as const,
        schema: '{"type": "object"}',
        tools: '[]',
        thinking: 'off' as const,
        stop: '\\n\nUser:',
        topK: 20,
        minP: 0.1,
        presencePenalty: 0.5,
        frequencyPenalty: -0.5,
      },
      prompt: '1+1=',
      isBlind: false,
    }

    const query = writeAddress(shared)

    expect(readAddress(query as never)).toEqual(shared)
    expect(writeAddress({ models: [], settings: { ...DEFAULTS }, prompt: '', isBlind: false })).toEqual({})
  })

  it('does not say in a blind vote which column a model stands in', () => {
    const query = writeAddress({ models: ['trained', 'base'], settings: { ...DEFAULTS }, prompt: '', isBlind: true })

    expect(query).toEqual({ m: ['base', 'trained'], blind: '1' })
    expect(readAddress(query as never).isBlind).toBe(true)
  })

  it('takes no more than four models, and no settings that lie outside', () => {
    const OUTSIDE = { k: '0', minp: '2', pp: '-3', fp: 'x' }
    const read = readAddress({
      m: ['a', 'b', 'c', 'd', 'e'],
      t: '9',
      n: 'many',
      p: '0',
      format: 'xml',
      think: 'hard',
      ...OUTSIDE,
    })

    expect(read.models).toEqual(['a', 'b', 'c', 'd'])
    expect(read.settings).toEqual(DEFAULTS)
  })
})
