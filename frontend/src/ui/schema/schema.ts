/** From a JSON Schema to what a form shows; annotations are those of `trellis_contracts.parameter_schema`. */
import { isRecord } from '@/api/json'
import type { Locale } from '@/i18n'

export type Texts = Readonly<Record<Locale, string>>

/** Kinds of values that lists and maps hold. */
export type ItemKind = 'text' | 'integer' | 'number'

interface Common {
  name: string
  title: Texts
  help: Texts | null
  unit: string | null
  isRequired: boolean
  /** Empty means null. */
  isNullable: boolean
  /** Empty means derived from other parameters. */
  isAutomatic: boolean
  /** Folded away by forms. */
  isAdvanced: boolean
  /** What the value names, such as a model; null where it is the value itself. */
  source: string | null
  examples: readonly string[]
  default: unknown
}

export interface NumberParam extends Common {
  kind: 'integer' | 'number'
  minimum: number | null
  maximum: number | null
  above: number | null
  below: number | null
}

export interface TextParam extends Common {
  kind: 'text'
  /** A longer text or code, such as SQL. */
  isMultiline: boolean
  maxLength: number | null
  pattern: string | null
}

export interface ChoiceParam extends Common {
  kind: 'choice' | 'choices'
  choices: readonly string[]
}

export interface ListParam extends Common {
  kind: 'list'
  items: ItemKind
}

export interface MapParam extends Common {
  kind: 'map'
  items: ItemKind
}

export interface ObjectParam extends Common {
  kind: 'object'
  fields: readonly Param[]
}

export interface PlainParam extends Common {
  /** `json`: what no other control suits, written as JSON. */
  kind: 'boolean' | 'json'
}

export type Param = NumberParam | TextParam | ChoiceParam | ListParam | MapParam | ObjectParam | PlainParam

type Schema = Readonly<Record<string, unknown>>

/** Names of texts that are written in lines. */
const CODE = /^(sql|code|script)$|_(sql|code)$/i

/** Fields of `params` in their order; what the schema says in a form that is not known becomes JSON. */
export function readParams(schema: Schema): Param[] {
  return readFields(schema, schema)
}

function readFields(schema: Schema, root: Schema): Param[] {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(properties).flatMap(([name, field]) =>
    isRecord(field) ? [readParam(name, field, root, required.includes(name))] : [],
  )
}

function readParam(name: string, field: Schema, root: Schema, isRequired: boolean): Param {
  const { schema, isNullable } = withoutNull(field, root)
  const common: Common = {
    name,
    title: readTexts(field.title_texts) ?? both(typeof field.title === 'string' ? field.title : name),
    help: readTexts(field.help_texts) ?? (typeof field.description === 'string' ? both(field.description) : null),
    unit: typeof field.unit === 'string' ? field.unit : null,
    isRequired,
    isNullable,
    isAutomatic: typeof field.auto === 'string',
    isAdvanced: field.advanced === true,
    source: typeof field.source === 'string' ? field.source : null,
    examples: Array.isArray(field.examples) ? field.examples.map(String) : [],
    default: field.default ?? null,
  }
  return shape(common, schema, root, field.multiline === true || CODE.test(name))
}

function shape(common: Common, schema: Schema, root: Schema, isMultiline: boolean): Param {
  if (Array.isArray(schema.enum)) return { ...common, kind: 'choice', choices: schema.enum.map(String) }
  if ('const' in schema) return { ...common, kind: 'choice', choices: [String(schema.const)] }
  switch (schema.type) {
    case 'integer':
    case 'number':
      return {
        ...common,
        kind: schema.type,
        minimum: numberOr(schema.minimum),
        maximum: numberOr(schema.maximum),
        above: numberOr(schema.exclusiveMinimum),
        below: numberOr(schema.exclusiveMaximum),
      }
    case 'boolean':
      return { ...common, kind: 'boolean' }
    case 'string':
      return {
        ...common,
        kind: 'text',
        isMultiline,
        maxLength: numberOr(schema.maxLength),
        pattern: typeof schema.pattern === 'string' ? schema.pattern : null,
      }
    case 'array':
      return arrayParam(common, resolve(schema.items, root))
    case 'object':
      return objectParam(common, schema, root)
    default:
      return { ...common, kind: 'json' }
  }
}

function arrayParam(common: Common, items: Schema): Param {
  if (Array.isArray(items.enum)) return { ...common, kind: 'choices', choices: items.enum.map(String) }
  const kind = itemKind(items)
  return kind === null ? { ...common, kind: 'json' } : { ...common, kind: 'list', items: kind }
}

function objectParam(common: Common, schema: Schema, root: Schema): Param {
  if (isRecord(schema.properties)) return { ...common, kind: 'object', fields: readFields(schema, root) }
  const items = isRecord(schema.additionalProperties) ? itemKind(resolve(schema.additionalProperties, root)) : null
  return items === null ? { ...common, kind: 'json' } : { ...common, kind: 'map', items }
}

function itemKind(schema: Schema): ItemKind | null {
  if (schema.type === 'string') return 'text'
  return schema.type === 'integer' || schema.type === 'number' ? schema.type : null
}

/** The one schema beside null; two that are not null have no control of their own. */
function withoutNull(field: Schema, root: Schema): { schema: Schema; isNullable: boolean } {
  const options = Array.isArray(field.anyOf) ? field.anyOf.filter(isRecord).map((one) => resolve(one, root)) : null
  if (options === null) return { schema: resolve(field, root), isNullable: false }
  const rest = options.filter((one) => one.type !== 'null')
  const only = rest[0]
  return { schema: rest.length === 1 && only !== undefined ? only : {}, isNullable: rest.length < options.length }
}

function resolve(schema: unknown, root: Schema): Schema {
  if (!isRecord(schema)) return {}
  const reference = schema.$ref
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return schema
  let found: unknown = root
  for (const part of reference.slice(2).split('/')) found = isRecord(found) ? found[part] : undefined
  return isRecord(found) ? { ...found, ...schema } : schema
}

function readTexts(value: unknown): Texts | null {
  return isRecord(value) && typeof value.en === 'string' && typeof value.zh === 'string'
    ? { en: value.en, zh: value.zh }
    : null
}

function both(text: string): Texts {
  return { en: text, zh: text }
}

function numberOr(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** Whether two values of JSON are the same. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]))
  if (!isRecord(one) || !isRecord(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length && names.every((name) => name in other && isSame(one[name], other[name]))
  )
}

export type Values = Readonly<Record<string, unknown>>

/** What a field shows: what was set, else the default. */
export function valueOf(param: Param, values: Values): unknown {
  return param.name in values ? values[param.name] : param.default
}

/** Sets a value; the default is left out, so that it follows the platform's. */
export function setValue(params: readonly Param[], values: Values, name: string, value: unknown): Values {
  const others = Object.fromEntries(Object.entries(values).filter(([key]) => key !== name))
  const param = params.find((one) => one.name === name)
  const isDefault = param !== undefined && !param.isRequired && isSame(value, param.default)
  // In the order of the form, so that the document does not jump about.
  const next: Values = isDefault ? others : { ...others, [name]: value }
  const order = params.map((one) => one.name)
  return Object.fromEntries(Object.entries(next).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b)))
}

/** Required fields without a value. */
export function missingParams(params: readonly Param[], values: Values): Param[] {
  return params.filter((param) => param.isRequired && isEmpty(values[param.name]))
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** Where a form knows more of the values than their schema says. */
export interface FormHints {
  /** What a text may be, such as the columns of the dataset; other texts can be typed too. */
  suggest?: (param: Param) => readonly string[]
  /** Of a choice; itself where it is left out. */
  choiceText?: (param: Param, value: string) => string
}

export const NO_HINTS: FormHints = {}
