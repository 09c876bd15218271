/** Conversations behind links: what is kept of one, and what the playground makes of it again. */
import { api, unwrap } from '@/api/client'
import type { components } from '@/api/schema'
import { readAllPages } from '@/api/useCursorList'

import type { TextMessage } from './stream'
import { type Answer, newAnswer, type Settings, textOf } from './types'

export type Conversation = components['schemas']['Conversation']
export type SharedConversation = components['schemas']['SharedConversationRead']
export type SharedLink = components['schemas']['SharedConversationLink']

const PAGE_SIZE = 200

/** What columns show: to each prompt an answer, or several with calls of tools between them. */
export interface Shown {
  settings: Settings
  context: readonly TextMessage[]
  prompts: readonly string[]
  columns: readonly { model: string; turns: readonly (readonly Answer[])[] }[]
}

function isOver({ state }: Answer): boolean {
  return state === 'done' || state === 'stopped'
}

/** Answers up to the first that failed or is still being written; what follows one would make no sense. */
function keptOf(turns: Shown['columns'][number]['turns']): Answer[][] {
  const kept: Answer[][] = []
  for (const steps of turns) {
    const end = steps.findIndex((answer) => !isOver(answer))
    kept.push(end === -1 ? [...steps] : steps.slice(0, end))
    if (end !== -1) break
  }
  return kept
}

/** As the API keeps it: texts without probabilities. */
export function contentOf({ settings, context, prompts, columns }: Shown): Conversation {
  const { topP, maxTokens, schema, topK, minP, presencePenalty, frequencyPenalty, ...same } = settings
  return {
    settings: {
      ...same,
      top_p: topP,
      max_tokens: maxTokens,
      response_schema: schema,
      top_k: topK,
      min_p: minP,
      presence_penalty: presencePenalty,
      frequency_penalty: frequencyPenalty,
    },
    context: [...context],
    prompts: [...prompts],
    columns: columns.map(({ model, turns }) => ({
      model,
      turns: keptOf(turns).map((steps) =>
        steps.map((answer) => ({
          text: textOf(answer),
          is_edited: answer.edited !== null || answer.begun.length > 0,
          calls: answer.calls.map((call, at) => ({ ...call, result: answer.results?.[at] ?? null })),
        })),
      ),
    })),
  }
}

type SharedAnswer = components['schemas']['SharedAnswer']

function answerOf({ text, is_edited: isEdited, calls }: SharedAnswer, isJson: boolean): Answer {
  const all = calls ?? []
  const results =
    all.length > 0 && all.every(({ result }) => result != null) ? all.map(({ result }) => result ?? '') : null
  return {
    ...newAnswer(isJson),
    state: 'done',
    tokens: text === '' ? [] : [{ text, logprob: null, top: [] }],
    edited: isEdited === true ? text : null,
    calls: all.map(({ id, name, arguments: given }) => ({ id, name, arguments: given })),
    results,
  }
}

/** What the playground shows for a shared conversation. */
export function shownOf({ settings, context, prompts, columns }: Conversation): Shown {
  const format = settings.format ?? 'text'
  return {
    settings: {
      system: settings.system ?? '',
      temperature: settings.temperature,
      topP: settings.top_p,
      maxTokens: settings.max_tokens,
      seed: settings.seed ?? null,
      format,
      schema: settings.response_schema ?? '',
      tools: settings.tools ?? '',
      thinking: settings.thinking ?? 'default',
      stop: settings.stop ?? '',
      topK: settings.top_k ?? null,
      minP: settings.min_p ?? 0,
      presencePenalty: settings.presence_penalty ?? 0,
      frequencyPenalty: settings.frequency_penalty ?? 0,
    },
    context: context ?? [],
    prompts,
    columns: columns.map(({ model, turns }) => ({
      model,
      turns: (turns ?? []).map((steps) => steps.map((answer) => answerOf(answer, format !== 'text'))),
    })),
  }
}

export function shareConversation(content: Conversation): Promise<SharedConversation> {
  return unwrap(api.POST('/api/v1/shared-conversations', { body: content }))
}

export function readShared(id: string): Promise<SharedConversation> {
  return unwrap(api.GET('/api/v1/shared-conversations/{shared_id}', { params: { path: { shared_id: id } } }))
}

/** One's own links, newest first; a user has a few hundred at most. */
export function listShared(signal: AbortSignal): Promise<SharedLink[]> {
  return readAllPages((cursor) =>
    unwrap(api.GET('/api/v1/shared-conversations', { params: { query: { limit: PAGE_SIZE, cursor } }, signal })),
  )
}

/** What opens a shared conversation, for the address of the page. */
export function queryOf(id: string): { shared: string } {
  return { shared: id }
}

export async function deleteShared(id: string): Promise<void> {
  await unwrap(api.DELETE('/api/v1/shared-conversations/{shared_id}', { params: { path: { shared_id: id } } }))
}
