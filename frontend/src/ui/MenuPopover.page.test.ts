import { expect, it } from 'vitest'
import { h, nextTick } from 'vue'

import { mount } from '@/testing/withSetup'

import MenuPopover from './MenuPopover.vue'

it('takes the focus when it opens and gives it back on Escape', async () => {
  const { root, end } = mount(
    {
      render: () =>
        h(
          MenuPopover,
          { title: 'Columns', label: 'Columns', icon: 'columns', test: 'columns' },
          { default: () => h('input', { class: 'first' }) },
        ),
    },
    {},
  )
  const button = root.querySelector<HTMLElement>('[data-test="columns"]')

  button?.click()
  await nextTick()
  await nextTick()
  const first = document.querySelector<HTMLInputElement>('.first')
  expect(button?.getAttribute('aria-expanded')).toBe('true')
  expect(document.activeElement).toBe(first)

  first?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))
  await nextTick()
  expect(button?.getAttribute('aria-expanded')).toBe('false')
  expect(document.activeElement).toBe(button)
  end()
})
