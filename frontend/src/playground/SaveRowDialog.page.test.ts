import { NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick, shallowRef } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { rowOf, type Saved, takes } from './rows'
import SaveRowDialog from './SaveRowDialog.vue'

afterEach(() => {
  vi.restoreAllMocks()
})

const CONVERSATION: Saved = {
  kind: 'conversation',
  messages: [
    { role: 'user', content: '1+1=' },
    { role: 'assistant', content: '3' },
  ],
  tools: null,
}
const PAIR: Saved = {
  kind: 'pair',
  prompt: [{ role: 'user', content: '1+1=' }],
  sides: [
    { label: 'A', text: '3' },
    { label: 'B', text: '2' },
  ],
}
const DATASETS = [
  { id: 'ds_1', name: 'chats', state: 'ready', format: 'messages' },
  { id: 'ds_2', name: 'pairs', state: 'ready', format: 'preference' },
]

function show(first: Saved) {
  const saved = shallowRef<Saved | null>(first)
  const sent: { path: string; parts: unknown; body: unknown }[] = []
  answering('GET', () => answer(200, { items: DATASETS, next_cursor: null }))
  answering('POST', ({ path, parts, body }) => {
    sent.push({ path, parts, body })
    return answer(201, { id: 'ds_1' })
  })
  const dialog = { setup: () => () => h(SaveRowDialog, { saved: saved.value, onClose: () => (saved.value = null) }) }
  const { end } = mount({ setup: () => () => h(NMessageProvider, () => h(dialog)) }, {}, (app) =>
    app.use(createPinia()),
  )
  return { saved, sent, end }
}

function find(selector: string): HTMLElement {
  const found = [...document.querySelectorAll<HTMLElement>(selector)].at(-1)
  if (found === undefined) throw new Error(`there is no ${selector}`)
  return found
}

function type(selector: string, text: string): void {
  const field = find(selector)
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement))
    throw new Error(`${selector} is no field`)
  field.value = text
  field.dispatchEvent(new Event('input'))
}

describe('keeping a row', () => {
  it('saves the corrected answer into a new dataset, and the next one behind it', async () => {
    const { saved, sent, end } = show(CONVERSATION)
    await nextTick()
    expect(find('#row-answer')).toHaveProperty('value', '3')

    type('#row-answer', '2')
    type('#row-name', 'chats')
    await nextTick()
    find('.form').dispatchEvent(new Event('submit'))
    await vi.waitFor(() => {
      expect(saved.value).toBeNull()
    })
    const messages = [
      { role: 'user', content: '1+1=' },
      { role: 'assistant', content: '2' },
    ]
    expect(sent[0]).toMatchObject({ path: '/api/v1/datasets/rows', body: { name: 'chats', rows: [{ messages }] } })

    saved.value = { ...CONVERSATION }
    await nextTick()
    find('.form').dispatchEvent(new Event('submit'))
    await vi.waitFor(() => {
      expect(sent).toHaveLength(2)
    })
    expect(sent[1]).toMatchObject({
      path: '/api/v1/datasets/{dataset_id}/rows',
      parts: { dataset_id: 'ds_1' },
      body: { branch: 'main' },
    })
    end()
  })

  it('saves the answer that was chosen as the better one of a pair', async () => {
    const { sent, end } = show(PAIR)
    await nextTick()

    find('[data-test=better-1] input, input[data-test=better-1]').click()
    type('#row-name', 'pairs')
    await nextTick()
    find('.form').dispatchEvent(new Event('submit'))
    await vi.waitFor(() => {
      expect(sent).toHaveLength(1)
    })

    expect(sent[0]?.body).toMatchObject({
      rows: [
        {
          prompt: [{ role: 'user', content: '1+1=' }],
          chosen: [{ role: 'assistant', content: '2' }],
          rejected: [{ role: 'assistant', content: '3' }],
        },
      ],
    })
    end()
  })
})

describe('a row', () => {
  it('keeps calls and tools', () => {
    const call = { id: 'c1', type: 'function' as const, function: { name: 'weather', arguments: '{}' } }
    const saved: Saved = {
      kind: 'conversation',
      messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: '', tool_calls: [call] },
      ],
      tools: [{ type: 'function' }],
    }

    expect(rowOf(saved, { text: '', better: 0 })).toEqual({ messages: saved.messages, tools: [{ type: 'function' }] })
  })

  it('goes into datasets of its format alone', () => {
    expect(takes({ state: 'ready', format: 'messages' }, 'conversation')).toBe(true)
    expect(takes({ state: 'ready', format: 'messages' }, 'pair')).toBe(false)
    expect(takes({ state: 'creating', format: null }, 'conversation')).toBe(false)
  })
})
