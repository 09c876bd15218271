import { NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick, reactive, ref } from 'vue'

import { mount } from '@/testing/withSetup'

import ModelColumn from './ModelColumn.vue'
import { DEFAULTS, type Endpoint, type Settings } from './types'

const READY = {
  id: 'ep_1',
  name: 'sft',
  state: 'ready',
  state_since: '2026-01-01T00:00:00Z',
  idle_timeout_s: 600,
  max_model_len: 512,
  failure: null,
  can_stop: true,
  sharing_refusal: null,
} as unknown as Endpoint

afterEach(() => {
  vi.unstubAllGlobals()
})

interface Said {
  content?: string
  tool_calls?: unknown[]
}

/** Answers of the engine, one after the other; what was asked is kept. */
/** An answer that names the weights that wrote it, as the platform's do. */
function answeringFrom(model: string) {
  const event = JSON.stringify({ model, choices: [{ delta: { content: '2' }, finish_reason: 'stop' }] })
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(`data: ${event}\n\ndata: [DONE]\n\n`)))
}

function answeringChats(...deltas: (Said | { error: { message: string; code: string } })[]) {
  const asked: {
    messages: unknown[]
    tools?: unknown
    response_format?: unknown
    chat_template_kwargs?: unknown
    continue_final_message?: boolean
  }[] = []
  vi.stubGlobal('fetch', (_: string, { body }: { body: string }) => {
    asked.push(JSON.parse(body) as (typeof asked)[number])
    const delta = deltas[asked.length - 1] ?? { content: 'more' }
    if ('error' in delta) return Promise.resolve(new Response(JSON.stringify(delta), { status: 400 }))
    const event = { choices: [{ delta, finish_reason: 'stop' }] }
    return Promise.resolve(new Response(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`))
  })
  return asked
}

/** A column with its model loaded. */
function show(
  prompts: string[],
  settings: Partial<Settings> = {},
  {
    endpoint = READY,
    canStart = true,
    isText = false,
    start,
  }: { endpoint?: Endpoint; canStart?: boolean; isText?: boolean; start?: (name: string) => void } = {},
) {
  const part = ref<InstanceType<typeof ModelColumn> | null>(null)
  const saved: unknown[] = []
  const props = reactive({ prompts, draft: '', isColoured: false, endpoint })
  const done = (): Promise<void> => Promise.resolve()
  const column = {
    setup: () => () =>
      h(ModelColumn, {
        ref: part,
        modelValue: 'sft',
        choices: [],
        endpoint: props.endpoint,
        canStart,
        isText,
        prompts: props.prompts,
        draft: props.draft,
        settings: { ...DEFAULTS, ...settings },
        context: [],
        isColoured: props.isColoured,
        canRemove: false,
        position: 0,
        letter: null,
        start: (name: string) => {
          start?.(name)
          return done()
        },
        stop: done,
        setPreemptible: done,
        onSave: (messages: unknown) => saved.push(messages),
      }),
  }
  const mounted = mount({ setup: () => () => h(NMessageProvider, () => h(column)) }, {}, (app) =>
    app.use(createPinia()),
  )
  const find = (name: string) => mounted.root.querySelector<HTMLElement>(`[data-test=${name}]`)
  return { ...mounted, part, props, saved, find }
}

function type(field: HTMLElement | null | undefined, text: string): void {
  const area = field instanceof HTMLTextAreaElement ? field : field?.querySelector('textarea')
  if (area == null) throw new Error('there is no field')
  area.value = text
  area.dispatchEvent(new Event('input'))
}

async function until(check: () => boolean): Promise<void> {
  await vi.waitFor(() => {
    expect(check()).toBe(true)
  })
}

const CALL = {
  content: '',
  tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
}
const TOOLS = [{ type: 'function', function: { name: 'weather' } }]

describe('a column', () => {
  it('shows calls of tools, sends what was typed as their results, and goes on', async () => {
    const asked = answeringChats(CALL, { content: 'It is **cold**.' })
    const { part, find, root, end } = show(['Weather in Oslo?'], { tools: JSON.stringify(TOOLS), format: 'json' })

    await part.value?.answerTo(0)
    await nextTick()
    expect(asked[0]).toMatchObject({ tools: TOOLS, response_format: { type: 'json_object' } })
    expect([find('call-name')?.textContent, find('call-arguments')?.textContent]).toEqual([
      'weather',
      '{\n  "city": "Oslo"\n}',
    ])
    expect([part.value?.isWaitingForResults, part.value?.isWriting]).toEqual([true, false])
    type(find('result'), '-4 °C')
    root.querySelector('form[data-test=calls]')?.dispatchEvent(new Event('submit'))
    await until(() => find('answer') !== null)

    expect(asked[1]?.messages).toEqual([
      { role: 'user', content: 'Weather in Oslo?' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '-4 °C' },
    ])
    expect(part.value?.isWaitingForResults).toBe(false)
    // A vote has plain texts only.
    expect(part.value?.voted()).toBeNull()
    end()
  })

  it('says what to do where a model has no tools', async () => {
    answeringChats({
      error: { message: "The chat template of 'sft' doesn't include tools.", code: 'tools_unsupported' },
    })
    const { part, root, end } = show(['Hi'], { tools: JSON.stringify(TOOLS) })

    await part.value?.answerTo(0)
    await nextTick()

    const said = root.querySelector('[role=alert]')?.textContent ?? ''
    expect(said).toContain("doesn't include tools")
    expect(said).toContain('clear the tools in the settings')
    end()
  })

  it('draws answers as Markdown, JSON as it is, and tokens where they are coloured', async () => {
    answeringChats({ content: 'It is **cold**.' }, { content: '{"a": "*b*"}' })
    const first = show(['Hi'])
    await first.part.value?.answerTo(0)
    await until(() => first.find('answer')?.querySelector('strong')?.textContent === 'cold')
    first.props.isColoured = true
    await nextTick()
    expect(first.find('answer')?.querySelector('strong')).toBeNull()
    expect(first.find('answer')?.textContent).toBe('It is **cold**.')
    first.end()

    const json = show(['Hi'], { format: 'json' })
    await json.part.value?.answerTo(0)
    await until(() => json.find('answer')?.textContent === '{"a": "*b*"}')
    json.end()
  })

  it('goes on from an answer that was edited, and asks later prompts again', async () => {
    const asked = answeringChats({ content: '3' }, { content: 'Yes.' }, { content: 'Sure.' })
    const { part, props, find, root, saved, end } = show(['1+1='])
    await part.value?.answerTo(0)
    props.prompts = ['1+1=', 'Sure?']
    await nextTick()
    await part.value?.answerTo(1)
    await nextTick()

    find('edit-answer')?.click()
    await nextTick()
    type(find('answer-draft'), '2')
    root.querySelector('form')?.dispatchEvent(new Event('submit'))
    await until(() => asked.length === 3 && part.value?.isWriting === false)

    expect(asked[2]?.messages).toEqual([
      { role: 'user', content: '1+1=' },
      { role: 'assistant', content: '2' },
      { role: 'user', content: 'Sure?' },
    ])
    await nextTick()
    expect(root.textContent).toContain('Edited.')
    root.querySelectorAll<HTMLElement>('[data-test=save-row]')[1]?.click()
    expect(saved).toEqual([
      [
        { role: 'user', content: '1+1=' },
        { role: 'assistant', content: '2' },
        { role: 'user', content: 'Sure?' },
        { role: 'assistant', content: 'Sure.' },
      ],
    ])
    end()
  })

  it('votes on the weights that answered, whatever name they were asked by', async () => {
    answeringFrom('bot-v2')
    const { part, end } = show(['1+1='])

    await part.value?.answerTo(0)

    expect(part.value?.voted()).toMatchObject({ model: 'bot-v2', text: '2', isEdited: false })
    end()
  })

  it('goes on from the end of an edited answer, and says how far that was there', async () => {
    const asked = answeringChats({ content: '3' }, { content: ' 2.' })
    const { part, find, root, end } = show(['1+1='])
    await part.value?.answerTo(0)
    await nextTick()
    find('edit-answer')?.click()
    await nextTick()
    type(find('answer-draft'), 'The sum is')
    root.querySelector('form')?.dispatchEvent(new Event('submit'))
    await until(() => find('go-on') !== null)
    find('go-on')?.click()
    await until(() => find('answer')?.textContent.trim() === 'The sum is 2.')

    expect(asked[0]?.continue_final_message).toBeUndefined()
    expect(asked[1]).toMatchObject({
      continue_final_message: true,
      messages: [
        { role: 'user', content: '1+1=' },
        { role: 'assistant', content: 'The sum is' },
      ],
    })
    expect(find('continued')?.textContent).toBe('Continued from the edited text.')
    // Half of it is nobody's answer to vote on.
    expect(part.value?.voted()).toMatchObject({ text: 'The sum is 2.', isEdited: true })
    end()
  })

  it('shows the prompt that the model gets, with its special tokens', async () => {
    const pieces = [
      { text: '<|im_start|>', is_special: true },
      { text: 'user\n1+1=', is_special: false },
    ]
    const asked: unknown[] = []
    vi.stubGlobal('fetch', (path: string, { body }: { body: string }) => {
      asked.push([path, JSON.parse(body)])
      return Promise.resolve(new Response(JSON.stringify({ count: 5, max_model_len: 512, tokens: [1], pieces })))
    })
    const { props, find, end } = show([], { system: 'Be short.', tools: JSON.stringify(TOOLS), thinking: 'off' })
    props.draft = '1+1='
    await nextTick()
    find('show-draft-prompt')?.click()
    await vi.waitFor(() => {
      expect(document.querySelector('[data-test=rendered]')?.textContent).toBe('<|im_start|>user\n1+1=')
    })

    expect([...document.querySelectorAll('[data-test=special]')].map(({ textContent }) => textContent)).toEqual([
      '<|im_start|>',
    ])
    expect(document.body.textContent).toContain('5 tokens of 512')
    expect(asked).toEqual([
      [
        '/v1/tokenize',
        {
          model: 'sft',
          messages: [
            { role: 'system', content: 'Be short.' },
            { role: 'user', content: '1+1=' },
          ],
          tools: TOOLS,
          chat_template_kwargs: { enable_thinking: false, thinking: false },
        },
      ],
    ])
    end()
  })

  it('asks at once where it is not known what to start, and asks again while that starts', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 100 })
    const asked = answeringChats(
      { error: { message: "Model 'sft' is loading.", code: 'endpoint_starting' } },
      { content: '2' },
    )
    const started: string[] = []
    const { part, root, end } = show(
      ['1+1='],
      {},
      { endpoint: { ...READY, state: 'stopped' }, canStart: false, start: (name) => started.push(name) },
    )

    await part.value?.answerTo(0)
    await nextTick()
    vi.useRealTimers()

    expect([asked.length, started, part.value?.hasAnswer]).toEqual([2, [], true])
    expect(root.textContent).toContain('2')
    end()
  })

  it('goes on when what it starts is ready at once, and waits for one that stops', async () => {
    const asked = answeringChats({ content: '2' }, { content: '2' })
    const { part, props, end } = show(
      ['1+1='],
      {},
      {
        endpoint: { ...READY, state: 'stopped' },
        start: () => {
          props.endpoint = READY
        },
      },
    )
    await part.value?.answerTo(0)
    expect([asked.length, part.value?.hasAnswer]).toEqual([1, true])
    end()

    const started: string[] = []
    const stopping = show(
      ['1+1='],
      {},
      { endpoint: { ...READY, state: 'stopping' }, start: (name) => started.push(name) },
    )
    const answered = stopping.part.value?.answerTo(0)
    await nextTick()
    expect(asked.length).toBe(1)
    stopping.props.endpoint = { ...READY, state: 'stopped' }
    await answered
    expect([asked.length, started]).toEqual([2, []])
    stopping.end()
  })

  it('folds what a model thinks, and asks for it or does without', async () => {
    const asked = answeringChats({ content: '<think>\nOne and one.\n</think>\n\nIt is **2**.' }, { content: '2' })
    const { part, find, root, end } = show(['1+1='], { thinking: 'on', stop: 'User:', minP: 0.1 })
    await part.value?.answerTo(0)
    await until(() => find('thoughts') !== null)
    expect([
      find('thoughts')?.hasAttribute('open'),
      find('thoughts')?.querySelector('p')?.textContent,
      root.querySelector('strong')?.textContent,
    ]).toEqual([false, 'One and one.', '2'])
    expect(find('answer')?.textContent).not.toContain('think>')
    end()

    const without = show(['1+1='], { thinking: 'off' })
    await without.part.value?.answerTo(0)
    expect(asked[0]).toMatchObject({ stop: ['User:'], min_p: 0.1 })
    expect(asked[1]).not.toHaveProperty('stop')
    expect(asked.map((each) => each.chat_template_kwargs)).toEqual([
      { enable_thinking: true, thinking: true },
      { enable_thinking: false, thinking: false },
    ])
    expect(without.find('thoughts')).toBeNull()
    without.end()
  })

  it('lets a model without a chat template go on with the text, and with the beginning of an answer', async () => {
    const asked: { path: string; body: Record<string, unknown> }[] = []
    vi.stubGlobal('fetch', (path: string, { body }: { body: string }) => {
      asked.push({ path, body: JSON.parse(body) as Record<string, unknown> })
      const event = {
        choices: [{ text: asked.length === 1 ? '2' : ', surely', logprobs: null, finish_reason: 'length' }],
      }
      return Promise.resolve(new Response(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`))
    })
    const { part, find, end } = show(
      ['1+1='],
      { tools: JSON.stringify(TOOLS), seed: null, thinking: 'on', topK: 20 },
      { isText: true },
    )
    await part.value?.answerTo(0)
    await until(() => find('go-on') !== null)
    expect([find('is-text') === null, find('show-prompt'), find('answer')?.textContent.trim()]).toEqual([
      false,
      null,
      '2',
    ])
    find('go-on')?.click()
    await until(() => find('answer')?.textContent.trim() === '2, surely')

    expect(asked.map(({ path, body }) => [path, body.prompt])).toEqual([
      ['/v1/completions', '1+1='],
      ['/v1/completions', '1+1=2'],
    ])
    expect(asked[0]?.body).toEqual({
      model: 'sft',
      prompt: '1+1=',
      temperature: 0.7,
      top_p: 1,
      max_tokens: 256,
      top_k: 20,
      stream: true,
      return_token_ids: true,
      logprobs: 5,
    })
    end()
  })

  it('that was added in the middle of a conversation is asked from its beginning', async () => {
    const asked = answeringChats({ content: '2' }, { content: 'Yes.' })
    const { part, end } = show(['1+1=', 'Sure?'])

    await part.value?.answerTo(1)

    expect(asked.map(({ messages }) => messages.length)).toEqual([1, 3])
    expect([part.value?.hasAnswer, part.value?.isWriting]).toEqual([true, false])
    end()
  })
})
