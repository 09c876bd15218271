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
  return Array.isArray(tools) && tools.length > 0 ? JSON.stringify(tools, (_, value: unknown) => (value === null ? undefined : value), 2) : ''
}

/** The last turn of the user's with all before it; null without one, or with turns that are no plain texts (tools). */
export function handedOf(turns: readonly Turn[], tools: unknown = null): Handed | null {
  const kept = asked(turns)
  const prompt = kept.at(-1)?.text.trim() ?? ''
  if (prompt === '' || hindering(turns) !== null) return null
  const hasSystem = kept[0]?.role === 'system'
  const context = kept.slice(hasSystem ? 1 : 0, -1).flatMap(({ role, text }): TextMessage[] => (isRole(role) ? [{ role, content: text }] : []))
  return { system: hasSystem ? (kept[0]?.text.trim() ?? '') : '', context, prompt, tools: spellRowTools(tools) }
}

/** How chat templates mark turns: ChatML, and Llama 3. The playground renders them anew. */
const MARKED = [/<\|im_start\|>(\w+)\n([\s\S]*?)<\|im_end\|>/g, /<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n([\s\S]*?)<\|eot_id\|>/g]

/** Turns of a prompt as a model read it; a text without marks is a question of the user's. */
export function turnsOf(prompt: string): Turn[] {
  for (const marks of MARKED) {
    const found = [...prompt.matchAll(marks)].map(([, role = '', text = '']) => ({ role, text }))
    if (found.length > 0) return found
  }
  return [{ role: 'user', text: prompt }]
}

export function openPlayground(router: Router, handed: Handed, model: string | null = null): void {
  void router.push({ name: 'playground', query: model === null ? {} : { m: model }, state: { handed: JSON.stringify(handed) } })
}

/** What was handed on, out of the browser's history; null for anything else. */
export function readHanded(state: unknown): Handed | null {
  const text = isRecord(state) ? state.handed : null
  if (typeof text !== 'string') return null
  const found: unknown = JSON.parse(text)
  if (!isRecord(found) || typeof found.prompt !== 'string' || typeof found.system !== 'string' || !Array.isArray(found.context)) return null
  const context = found.context.flatMap((each): TextMessage[] => (isRecord(each) && isRole(each.role) && typeof each.content === 'string' ? [{ role: each.role, content: each.content }] : []))
  return { system: found.system, context, prompt: found.prompt, tools: typeof found.tools === 'string' ? found.tools : '' }
}
