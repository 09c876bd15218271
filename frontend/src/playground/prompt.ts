/** The prompt that a model gets for a conversation, as its endpoint renders it. */
import type { components } from '@/api/schema'

import { post } from './openai'
import { readTools, templatePartsOf } from './requestParts'
import type { Settings } from './types'
import type { Asked } from './useConversation'

export type RenderedPrompt = components['schemas']['RenderedPrompt']

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
