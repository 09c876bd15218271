import { describe, expect, it } from 'vitest'

import { hasProblem, partsOf, readFormat, readStop, readTools, samplingPartsOf, spellTools } from './requestParts'
import { DEFAULTS } from './types'

const WEATHER = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }

function problemOf(tools: unknown) {
  return readTools(typeof tools === 'string' ? tools : JSON.stringify(tools)).problem
}

describe('the format of answers', () => {
  it('is sent as the API takes it', () => {
    expect(readFormat({ format: 'text', schema: '{' }).value).toBeNull()
    expect(readFormat({ format: 'json', schema: '' }).value).toEqual({ type: 'json_object' })
    expect(readFormat({ format: 'schema', schema: '{"type": "object"}' }).value).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema: { type: 'object' } },
    })
  })

  it('says what is wrong with a schema', () => {
    expect(readFormat({ format: 'schema', schema: ' ' }).problem?.key).toBe('noSchema')
    expect(readFormat({ format: 'schema', schema: '[1]' }).problem?.key).toBe('notAnObject')
    const { problem } = readFormat({ format: 'schema', schema: '{"type": }' })
    expect(problem?.key).toBe('notJson')
    expect(String(problem?.named.reason)).toContain('JSON')
  })
})

describe('texts that end an answer', () => {
  it('stand one in a line, with signs for what cannot be typed', () => {
    expect(readStop('').value).toBeNull()
    expect(readStop('User:\n\n\\n\\n\n and\\t\\\\n\\d').value).toEqual(['User:', '\n\n', ' and\t\\n\\d'])
  })

  it('are as many and as long as the API takes them', () => {
    const lines = (n: number) => Array.from({ length: n }, (_, at) => `stop ${String(at)}`).join('\n')
    expect([readStop(lines(16)).value?.length, readStop(lines(17)).problem]).toEqual([
      16,
      { key: 'manyStops', named: { max: 16 } },
    ])
    expect(readStop(`a\n${'b'.repeat(257)}`).problem).toEqual({ key: 'longStop', named: { n: 2, max: 256 } })
    expect([hasProblem({ ...DEFAULTS, stop: lines(17) }), hasProblem({ ...DEFAULTS, stop: 'a' })]).toEqual([
      true,
      false,
    ])
  })
})

describe('how tokens are sampled', () => {
  it('is sent where it differs from the defaults', () => {
    expect(samplingPartsOf(DEFAULTS)).toEqual({})
    expect(
      samplingPartsOf({ ...DEFAULTS, stop: '\\n', topK: 20, minP: 0.1, presencePenalty: 0.5, frequencyPenalty: -0.5 }),
    ).toEqual({ stop: ['\n'], top_k: 20, min_p: 0.1, presence_penalty: 0.5, frequency_penalty: -0.5 })
  })
})

describe('tools', () => {
  it('are sent where there are some', () => {
    expect(partsOf({ ...DEFAULTS, tools: JSON.stringify([WEATHER]) })).toEqual({ tools: [WEATHER] })
    expect(partsOf({ ...DEFAULTS })).toEqual({})
    expect(partsOf({ ...DEFAULTS, tools: '[]', format: 'json' })).toEqual({ response_format: { type: 'json_object' } })
  })

  it('that are wrong are named', () => {
    expect(problemOf('[')?.key).toBe('notJson')
    expect(problemOf(WEATHER)?.key).toBe('notAList')
    expect(problemOf([WEATHER, 'weather'])).toEqual({ key: 'noTool', named: { n: 2 } })
    expect(problemOf([{ name: 'weather' }])).toEqual({ key: 'toolType', named: { n: 1 } })
    expect(problemOf([{ type: 'function' }])?.key).toBe('toolFunction')
    expect(problemOf([{ type: 'function', function: { name: 'the weather' } }])?.key).toBe('toolName')
    expect(problemOf([{ type: 'function', function: { name: 'weather', parameters: [] } }])).toEqual({
      key: 'toolParameters',
      named: { n: 1, name: 'weather' },
    })
    expect(problemOf([WEATHER, WEATHER])).toEqual({ key: 'toolTwice', named: { n: 2, name: 'weather' } })
  })

  it('are read from the tools of an environment', () => {
    const tool = { name: 'weather', description: 'Looks.', parameters: { type: 'object' } }

    expect(readTools(spellTools([tool])).value).toEqual([{ type: 'function', function: tool }])
  })
})
