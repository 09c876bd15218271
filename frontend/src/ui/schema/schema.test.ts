import { describe, expect, it } from 'vitest'

import { isSame, missingParams, type Param, readParams, setValue, valueOf } from './schema'

const TEXTS = { title_texts: { en: 'Threshold', zh: '阈值' }, help_texts: { en: 'How near.', zh: '多近。' } }

function only(field: Record<string, unknown>, more: Record<string, unknown> = {}): Param {
  const [param] = readParams({ type: 'object', properties: { it: { ...TEXTS, unit: null, ...field } }, ...more })
  if (param === undefined) throw new Error('no parameter was read')
  return param
}

describe('the form of a schema', () => {
  it('has numbers with their bounds, unit and both languages', () => {
    expect(only({ type: 'integer', minimum: 1, maximum: 20, default: 5, unit: 'tokens' })).toEqual({
      name: 'it',
      kind: 'integer',
      title: TEXTS.title_texts,
      help: TEXTS.help_texts,
      unit: 'tokens',
      isRequired: false,
      isNullable: false,
      isAutomatic: false,
      isAdvanced: false,
      source: null,
      examples: [],
      default: 5,
      minimum: 1,
      maximum: 20,
      above: null,
      below: null,
    })
  })

  it('lets a value that may be null be empty', () => {
    const param = only({
      anyOf: [{ type: 'number', exclusiveMinimum: 0, maximum: 1 }, { type: 'null' }],
      default: null,
    })
    expect(param).toMatchObject({ kind: 'number', isNullable: true, above: 0, maximum: 1, default: null })
  })

  it('reads what the platform says beside the values', () => {
    expect(only({ type: 'string', source: 'judges', examples: ['strict'], multiline: true })).toMatchObject({
      kind: 'text',
      isMultiline: true,
      source: 'judges',
      examples: ['strict'],
    })
    expect(only({ anyOf: [{ type: 'integer' }, { type: 'null' }], auto: 'batch', advanced: true })).toMatchObject({
      isAutomatic: true,
      isAdvanced: true,
    })
  })

  it('follows references, also beside null', () => {
    const $defs = { Shape: { enum: ['alpaca', 'messages'], type: 'string' } }
    expect(only({ $ref: '#/$defs/Shape', default: 'messages' }, { $defs })).toMatchObject({
      kind: 'choice',
      choices: ['alpaca', 'messages'],
      default: 'messages',
      title: TEXTS.title_texts,
    })
    expect(only({ anyOf: [{ $ref: '#/$defs/Shape' }, { type: 'null' }], default: null }, { $defs })).toMatchObject({
      kind: 'choice',
      isNullable: true,
    })
  })

  it.each([
    [
      { type: 'array', items: { enum: ['a', 'b'], type: 'string' } },
      { kind: 'choices', choices: ['a', 'b'] },
    ],
    [
      { type: 'array', items: { type: 'string' } },
      { kind: 'list', items: 'text' },
    ],
    [
      { type: 'array', items: { type: 'integer' } },
      { kind: 'list', items: 'integer' },
    ],
    [
      { type: 'object', additionalProperties: { type: 'number' } },
      { kind: 'map', items: 'number' },
    ],
    [
      { anyOf: [{ type: 'object', additionalProperties: { type: 'integer' } }, { type: 'null' }] },
      { kind: 'map', items: 'integer', isNullable: true },
    ],
    [
      { type: 'boolean', default: true },
      { kind: 'boolean', default: true },
    ],
    [
      { type: 'string', maxLength: 40 },
      { kind: 'text', maxLength: 40, isMultiline: false },
    ],
  ])('has a control for %j', (field, wanted) => {
    expect(only(field)).toMatchObject(wanted)
  })

  it('has fields within fields', () => {
    const param = only({ type: 'object', properties: { inner: { type: 'string' } }, required: ['inner'] })
    expect(param).toMatchObject({
      kind: 'object',
      fields: [{ name: 'inner', kind: 'text', isRequired: true, title: { en: 'inner', zh: 'inner' } }],
    })
  })

  it.each([
    [{ type: 'object', additionalProperties: true }],
    [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }],
    [{ type: 'array', items: { type: 'object' } }],
    [{ $ref: '#/$defs/Gone' }],
    [{}],
  ])('writes %j, for which no control is known, as JSON', (field) => {
    expect(only(field).kind).toBe('json')
  })

  it('is empty for what is no schema', () => {
    expect(readParams({})).toEqual([])
    expect(readParams({ properties: { it: 'text' } })).toEqual([])
  })
})

describe('values of a form', () => {
  const params = readParams({
    properties: {
      first: { type: 'integer', default: 1 },
      list: { type: 'array', items: { type: 'string' }, default: ['a'] },
      must: { type: 'string' },
    },
    required: ['must'],
  })

  it('leaves out what is default and keeps the order of the form', () => {
    expect(setValue(params, { list: ['b'] }, 'first', 2)).toEqual({ first: 2, list: ['b'] })
    expect(Object.keys(setValue(params, { list: ['b'] }, 'first', 2))).toEqual(['first', 'list'])
    expect(setValue(params, { first: 2, list: ['b'] }, 'list', ['a'])).toEqual({ first: 2 })
  })

  it('shows the default where nothing was set, and null where null was', () => {
    const [first] = params
    if (first === undefined) throw new Error('no parameter was read')
    expect(valueOf(first, {})).toBe(1)
    expect(valueOf(first, { first: null })).toBeNull()
  })

  it('knows which required ones are missing', () => {
    expect(missingParams(params, {}).map((param) => param.name)).toEqual(['must'])
    expect(missingParams(params, { must: '' })).toHaveLength(1)
    expect(missingParams(params, { must: 'x' })).toEqual([])
  })

  it('compares by content', () => {
    expect(isSame({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toBe(true)
    expect(isSame({ a: 1 }, { a: 1, b: undefined })).toBe(false)
    expect(isSame([1], { 0: 1 })).toBe(false)
  })
})
