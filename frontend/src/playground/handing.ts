/** A prompt that another page hands to the playground: from a row of a dataset, or from a problem of an evaluation. */
import type { Router } from 'vue-router'

import { isRecord } from '@/api/json'

import type { TextMessage } from './stream'

export interface Handed {
  system: string
  /** Turns before the prompt, which all columns are given. */
  context: TextMessage[]
  prompt: string
  /** Functions that the model may call, as the settings take them; empty: none. */
  tools: string
}

interface Turn {
  role: string
  text: string
}

const ROLES = ['system', 'user', 'assistant'] as const

function isRole(role: unknown): role is TextMessage['role'] {
  return ROLES.some((each) => each === role)
}

/** All turns up to the last question of the user's; none where nothing is asked. */
function asked(turns: readonly Turn[]): readonly Turn[] {
  const kept = turns.slice(0, turns.findLastIndex(({ role }) => role === 'user') + 1)
  return kept.at(-1)?.text.trim() ? kept : []
}

/** Why a question cannot be handed on: the role of a turn before it that is no plain text, such as what a tool returned. */
export function hindering(turns: readonly Turn[]): string | null {
  return asked(turns).find(({ role }) => !isRole(role))?.role ?? null
}

/** Tools as rows have them, a list or its JSON. Rows of a table have all fields that any of them has: empty ones are left out. */
function spellRowTools(tools: unknown): string {
  if (typeof tools === 'string') return tools.trim() === '[]' ? '' : tools
  return Array.isArray(tools) && tools.length > 0
    ? JSON.stringify(tools, (_, value: unknown) => (value === null ? undefined : value), 2)
    : ''
}

/** The last turn of the user's with all before it; null without one, or with turns that are no plain texts (tools). */
export function handedOf(turns: readonly Turn[], tools: unknown = null): Handed | null {
  const kept = asked(turns)
  const prompt = kept.at(-1)?.text.trim() ?? ''
  if (prompt === '' || hindering(turns) !== null) return null
  const hasSystem = kept[0]?.role === 'system'
  const context = kept
    .slice(hasSystem ? 1 : 0, -1)
    .flatMap(({ role, text }): TextMessage[] => (isRole(role) ? [{ role, content: text }] : []))
  return { system: hasSystem ? (kept[0]?.text.trim() ?? '') : '', context, prompt, tools: spellRowTools(tools) }
}

/** How chat templates mark turns, which the playground renders anew: `role` and `text`, or a text named by its role. */
const MARKED = [
  // ChatML, also as Phi-4 has it.
  /<\|im_start\|>(?<role>\w+)(?:\n|<\|im_sep\|>)(?<text>[\s\S]*?)<\|im_end\|>/g,
  // Llama 3.
  /<\|start_header_id\|>(?<role>\w+)<\|end_header_id\|>\n\n(?<text>[\s\S]*?)<\|eot_id\|>/g,
  // Gemma, whose assistant is "model".
  /<start_of_turn>(?<role>\w+)\n(?<text>[\s\S]*?)<end_of_turn>/g,
  // Phi-3, Zephyr and GLM: a turn ends with a mark of its own, or where the next begins.
  /<\|(?<role>system|user|assistant)\|>\n?(?<text>[\s\S]*?)(?:<\|end\|>|<\/s>|<\|endoftext\|>|(?=<\|(?:system|user|assistant)\|>))/g,
  // Llama 2 and Mistral.
  /\[SYSTEM_PROMPT\](?<before>[\s\S]*?)\[\/SYSTEM_PROMPT\]|\[INST\]\s*(?:<<SYS>>\n(?<system>[\s\S]*?)\n<<\/SYS>>\s*)?(?<user>[\s\S]*?)\[\/INST\](?:(?<assistant>[\s\S]*?)<\/s>)?/g,
]
const NAMED_SO: Readonly<Record<string, string>> = { model: 'assistant', before: 'system' }
/** At the beginning of prompts, also of models without a chat template. */
const BEGINNING = /^(?:<\|begin_of_text\|>|<\|endoftext\|>|<bos>|<s>|\[gMASK\]<sop>)+/
/** What a tokenizer takes for one token, and nobody types. */
const CONTROL =
  /<\|[\w-]+\|?>|<[\w-]+\|>|<｜[^｜\n]+｜>|<(?:start|end)_of_turn>|<(?:bos|eos)>|\[\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]/

function turnsIn({ groups = {} }: RegExpExecArray): Turn[] {
  const { role, text } = groups
  const told: [string, string | undefined][] = role === undefined ? Object.entries(groups) : [[role, text]]
  return told.flatMap(([name, said]) =>
    said === undefined ? [] : [{ role: NAMED_SO[name] ?? name, text: said.trim() }],
  )
}

/** A prompt as a model read it. */
export interface ReadPrompt {
  /** A text without marks is a question of the user's. */
  turns: Turn[]
  /** A mark of a chat template that is not known here: the turns are no turns then. */
  unknown: string | null
}

export function readPrompt(prompt: string): ReadPrompt {
  const marked = MARKED.map((marks) => [...prompt.matchAll(marks)].flatMap(turnsIn)).find((found) => found.length > 0)
  const turns = marked ?? [{ role: 'user', text: prompt.replace(BEGINNING, '') }]
  return { turns, unknown: turns.map(({ text }) => CONTROL.exec(text)?.[0]).find((mark) => mark !== undefined) ?? null }
}

export function openPlayground(router: Router, handed: Handed, model: string | null = null): void {
  void router.push({
    name: 'playground',
    query: model === null ? {} : { m: model },
    state: { handed: JSON.stringify(handed) },
  })
}

/** What was handed on, out of the browser's history; null for anything else. */
export function readHanded(state: unknown): Handed | null {
  const text = isRecord(state) ? state.handed : null
  if (typeof text !== 'string') return null
  const found: unknown = JSON.parse(text)
  if (
    !isRecord(found) ||
    typeof found.prompt !== 'string' ||
    typeof found.system !== 'string' ||
    !Array.isArray(found.context)
  )
    return null
  const context = found.context.flatMap((each): TextMessage[] =>
    isRecord(each) && isRole(each.role) && typeof each.content === 'string'
      ? [{ role: each.role, content: each.content }]
      : [],
  )
  return {
    system: found.system,
    context,
    prompt: found.prompt,
    tools: typeof found.tools === 'string' ? found.tools : '',
  }
}
