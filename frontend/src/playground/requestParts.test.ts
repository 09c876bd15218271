import { describe, expect, it } from 'vitest'

import { partsOf, readFormat, readTools, spellTools } from './requestParts'
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
