/** Parts of a request that are typed: a schema of answers and tools as JSON, and texts that end an answer. They are read before anything is sent. */
import { isRecord } from '@/api/json'

import { DEFAULTS, type Settings } from './types'

/** What is wrong with what was typed: a key below `playground.problem`, and what its text names. */
export interface Problem {
  key:
    | 'notJson'
    | 'noSchema'
    | 'notAnObject'
    | 'notAList'
    | 'noTool'
    | 'toolType'
    | 'toolFunction'
    | 'toolName'
    | 'toolParameters'
    | 'toolTwice'
    | 'manyStops'
    | 'longStop'
  named: Record<string, string | number>
}

export type Read<T> = { value: T; problem: null } | { value: null; problem: Problem }

/** As the API takes names of functions. */
const NAME = /^[A-Za-z0-9_.-]{1,64}$/
/** As the API takes texts that end an answer. */
const MAX_STOPS = 16
const MAX_STOP_LENGTH = 256
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', '\\': '\\' }
/** OpenAI's API asks for a name; nothing here depends on it. */
const SCHEMA_NAME = 'answer'

function fail(key: Problem['key'], named: Problem['named'] = {}): { value: null; problem: Problem } {
  return { value: null, problem: { key, named } }
}

function readJson(text: string): Read<unknown> {
  try {
    return { value: JSON.parse(text) as unknown, problem: null }
  } catch (cause) {
    return fail('notJson', { reason: cause instanceof Error ? cause.message : String(cause) })
  }
}

/** `response_format` of a request; null for plain text. */
export function readFormat({ format, schema }: Pick<Settings, 'format' | 'schema'>): Read<object | null> {
  if (format === 'text') return { value: null, problem: null }
  if (format === 'json') return { value: { type: 'json_object' }, problem: null }
  if (schema.trim() === '') return fail('noSchema')
  const read = readJson(schema)
  if (read.problem !== null) return read
  if (!isRecord(read.value)) return fail('notAnObject')
  return { value: { type: 'json_schema', json_schema: { name: SCHEMA_NAME, schema: read.value } }, problem: null }
}

/** What is wrong with one tool, the `n`th of the list. */
function checkTool(tool: unknown, n: number): ReturnType<typeof fail> | null {
  if (!isRecord(tool)) return fail('noTool', { n })
  if (tool.type !== 'function') return fail('toolType', { n })
  if (!isRecord(tool.function)) return fail('toolFunction', { n })
  const { name, parameters } = tool.function
  if (typeof name !== 'string' || !NAME.test(name)) return fail('toolName', { n })
  if (parameters !== undefined && !isRecord(parameters)) return fail('toolParameters', { n, name })
  return null
}

function nameOf(tool: unknown): string {
  return isRecord(tool) && isRecord(tool.function) ? String(tool.function.name) : ''
}

/** `tools` of a request; null where none were typed. */
export function readTools(text: string): Read<unknown[] | null> {
  if (text.trim() === '') return { value: null, problem: null }
  const read = readJson(text)
  if (read.problem !== null) return read
  if (!Array.isArray(read.value)) return fail('notAList')
  const tools: unknown[] = read.value
  for (const [index, tool] of tools.entries()) {
    const problem = checkTool(tool, index + 1)
    if (problem !== null) return problem
    if (tools.slice(0, index).some((other) => nameOf(other) === nameOf(tool)))
      return fail('toolTwice', { n: index + 1, name: nameOf(tool) })
  }
  return { value: tools.length === 0 ? null : tools, problem: null }
}

/** `stop` of a request: one text a line, in which `\n`, `\t` and `\\` stand for what cannot be typed; null without any. */
export function readStop(text: string): Read<string[] | null> {
  const stops = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/\\([nt\\])/g, (_, letter: string) => ESCAPES[letter] ?? letter))
  if (stops.length > MAX_STOPS) return fail('manyStops', { max: MAX_STOPS })
  const long = stops.findIndex((stop) => stop.length > MAX_STOP_LENGTH)
  if (long !== -1) return fail('longStop', { n: long + 1, max: MAX_STOP_LENGTH })
  return { value: stops.length === 0 ? null : stops, problem: null }
}

/** How tokens are sampled, beyond what every request says: only what differs from the defaults. */
export function samplingPartsOf({ stop, topK, minP, presencePenalty, frequencyPenalty }: Settings): {
  stop?: string[]
  top_k?: number
  min_p?: number
  presence_penalty?: number
  frequency_penalty?: number
} {
  const stops = readStop(stop).value
  return {
    ...(stops === null ? {} : { stop: stops }),
    ...(topK === null ? {} : { top_k: topK }),
    ...(minP === DEFAULTS.minP ? {} : { min_p: minP }),
    ...(presencePenalty === DEFAULTS.presencePenalty ? {} : { presence_penalty: presencePenalty }),
    ...(frequencyPenalty === DEFAULTS.frequencyPenalty ? {} : { frequency_penalty: frequencyPenalty }),
  }
}

/** Whether a setting that can be typed wrongly is. */
export function hasProblem(settings: Settings): boolean {
  return [readFormat(settings), readTools(settings.tools), readStop(settings.stop)].some(
    ({ problem }) => problem !== null,
  )
}

/** Tools of an environment, as they are typed. */
export function spellTools(
  tools: readonly { name: string; description: string; parameters: Record<string, unknown> }[],
): string {
  return JSON.stringify(
    tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, description, parameters },
    })),
    null,
    2,
  )
}

/** What a chat template is told; each has its own name for it, and ignores the other. Nothing where it is left to the template. */
export function templatePartsOf({ thinking }: Pick<Settings, 'thinking'>): { chat_template_kwargs?: object } {
  const isOn = thinking === 'on'
  return thinking === 'default' ? {} : { chat_template_kwargs: { enable_thinking: isOn, thinking: isOn } }
}

/** The fields of a request that come of the settings' JSON; what cannot be read is not sent. */
export function partsOf(settings: Settings): {
  response_format?: object
  tools?: unknown[]
  chat_template_kwargs?: object
} {
  const [format, tools] = [readFormat(settings).value, readTools(settings.tools).value]
  return {
    ...(format === null ? {} : { response_format: format }),
    ...(tools === null ? {} : { tools }),
    ...templatePartsOf(settings),
  }
}
