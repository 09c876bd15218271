/** What a model reads of a conversation or a text, as its endpoint tells it. */
import type { components } from '@/api/schema'

import { post } from './openai'
import { readTools, templatePartsOf } from './requestParts'
import type { Asked } from './stream'
import type { Settings } from './types'

export type RenderedPrompt = components['schemas']['RenderedPrompt']

/** The one token that spells a text; null where it takes several. */
export async function findToken(model: string, text: string, signal: AbortSignal): Promise<number | null> {
  const answer = await post('/v1/tokenize', { model, prompt: text }, signal)
  const { tokens } = (await answer.json()) as RenderedPrompt
  return tokens.length === 1 ? (tokens[0] ?? null) : null
}

export async function renderPrompt(
  model: string,
  { messages, isBegun }: Asked,
  settings: Settings,
  signal: AbortSignal,
): Promise<RenderedPrompt> {
  const tools = readTools(settings.tools).value
  const answer = await post(
    '/v1/tokenize',
    {
      model,
      messages,
      ...(tools === null ? {} : { tools }),
      ...templatePartsOf(settings),
      ...(isBegun ? { continue_final_message: true } : {}),
    },
    signal,
  )
  return (await answer.json()) as RenderedPrompt
}
