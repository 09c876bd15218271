import { afterEach, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import { useEndpoints } from './useEndpoints'

afterEach(() => {
  vi.restoreAllMocks()
})

const MODELS = [
  { id: 'mdl_aaaaaaaaaaaa', name: 'base', architecture: 'Qwen2ForCausalLM', has_chat_template: true, lineage: {} },
  { id: 'mdl_bbbbbbbbbbbb', name: 'old', architecture: 'GPT2LMHeadModel', has_chat_template: false, lineage: {} },
  { id: 'mdl_cccccccccccc', name: 'minilm', architecture: 'BertModel', has_chat_template: false, lineage: {} },
  {
    id: 'mdl_dddddddddddd',
    name: 'reward',
    architecture: 'Qwen2ForSequenceClassification',
    has_chat_template: true,
    lineage: {},
  },
  {
    id: 'mdl_ffffffffffff',
    name: 'lora',
    architecture: 'LORA',
    has_chat_template: false,
    lineage: { form: 'adapter', model_id: 'mdl_aaaaaaaaaaaa' },
  },
]
const BASE = {
  id: 'ep_1',
  name: 'base',
  kind: 'model',
  model: { id: 'mdl_aaaaaaaaaaaa', name: 'base' },
  job: null,
  step: null,
  state: 'ready',
}
const CHECKPOINT = {
  id: 'ep_2',
  name: 'job_aaaaaaaaaaaa:3',
  kind: 'checkpoint',
  model: { id: 'mdl_aaaaaaaaaaaa', name: 'base' },
  job: { id: 'job_aaaaaaaaaaaa', name: 'sft' },
  step: 3,
  state: 'ready',
}
const VERSIONS = [
  { number: 2, model: 'mdl_eeeeeeeeeeee', model_name: 'gone', exists: false, aliases: ['candidate'] },
  { number: 1, model: 'mdl_aaaaaaaaaaaa', model_name: 'base', exists: true, aliases: ['production'] },
]

/** The platform's lists; what is asked besides is kept. */
function serve(): string[] {
  const asked: string[] = []
  const lists: Record<string, unknown> = {
    '/api/v1/models': { items: MODELS, next_cursor: null },
    '/api/v1/endpoints': { items: [BASE, CHECKPOINT], next_cursor: null },
    '/api/v1/registry': { items: [{ name: 'bot', aliases: { production: 1, candidate: 2 }, versions: VERSIONS }] },
  }
  answering('GET', ({ path }) => answer(200, lists[path]))
  answering('POST', ({ path, parts }) => {
    asked.push(path.replace('{model_id}', parts.model_id ?? ''))
    return answer(202, BASE)
  })
  return asked
}

it('offers what can chat, and finds and starts it by every name that requests take', async () => {
  const asked = serve()
  const { it: endpoints, end } = withSetup(() => useEndpoints())
  await vi.waitFor(() => {
    expect(endpoints.choices.value.length).toBe(5)
  })

  expect(endpoints.choices.value).toEqual([
    { value: 'base', label: 'base' },
    { value: 'old', label: 'old' },
    { value: 'lora', label: 'lora' },
    { value: 'bot:production', label: 'bot:production (base)' },
    { value: 'job_aaaaaaaaaaaa:3', label: 'sft @ 3' },
  ])
  expect(
    ['base', 'mdl_aaaaaaaaaaaa', 'bot:production', 'bot:1', 'job_aaaaaaaaaaaa:3', 'old'].map(
      (name) => endpoints.endpointOf(name)?.id,
    ),
  ).toEqual(['ep_1', 'ep_1', 'ep_1', 'ep_1', 'ep_2', undefined])
  expect(['bot:candidate', 'job_aaaaaaaaaaaa:latest', 'nothing'].map((name) => endpoints.canStart(name))).toEqual([
    false,
    false,
    false,
  ])
  expect(['bot:production', 'mdl_bbbbbbbbbbbb', 'job_aaaaaaaaaaaa:9'].every((name) => endpoints.canStart(name))).toBe(
    true,
  )
  expect(
    ['base', 'bot:production', 'job_aaaaaaaaaaaa:3', 'lora', 'old', 'nothing'].map((name) => endpoints.isText(name)),
  ).toEqual([false, false, false, false, true, false])
  await endpoints.start('bot:production')
  expect(asked).toEqual(['/api/v1/models/mdl_aaaaaaaaaaaa/endpoint'])
  end()
})
