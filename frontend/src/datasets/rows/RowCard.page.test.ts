import { expect, it } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'

import { mount } from '@/testing/withSetup'

import type { Row } from '../types'
import RowCard from './RowCard.vue'

function show(row: Row) {
  const nothing = { render: () => null }
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: nothing },
      { path: '/playground', name: 'playground', component: nothing },
    ],
  })
  const { root, end } = mount(
    RowCard,
    { row, number: 1, dataset: { format: 'messages', format_columns: { messages: 'messages' } } },
    (app) => app.use(router),
  )
  return { root, end, router, find: (name: string) => root.querySelector<HTMLElement>(`[data-test=${name}]`) }
}

const ASK = { role: 'user', content: 'Weather in Oslo?' }
const TOOL = { type: 'function', function: { name: 'weather' } }

it('hands the tools of a row to the playground with its question', async () => {
  const { find, router, end } = show({ messages: [ASK], tools: [TOOL] })
  find('to-playground')?.click()
  await new Promise((resolve) => setTimeout(resolve))

  const handed = JSON.parse((router.options.history.state as { handed: string }).handed) as { tools: string }
  expect(JSON.parse(handed.tools)).toEqual([TOOL])
  end()
})

it('says why a question after results of tools cannot be asked', () => {
  const messages = [
    ASK,
    { role: 'assistant', content: 'Wait.' },
    { role: 'tool', content: '-4' },
    { role: 'user', content: 'And Rome?' },
  ]
  const { find, end } = show({ messages })

  expect([find('to-playground'), find('not-asked')?.textContent]).toEqual([
    null,
    'The playground can’t ask this: there are Tool turns before the last question.',
  ])
  end()
})
