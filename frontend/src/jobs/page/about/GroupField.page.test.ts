import { describe, expect, it } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'

import { mount } from '@/testing/withSetup'

import GroupField from './GroupField.vue'

/** What the page was told after the text was typed, and where the group led before. */
async function type(group: string | null, text: string): Promise<{ told: string[]; link: string | null }> {
  const told: string[] = []
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/jobs', name: 'jobs', component: { template: '' } }],
  })
  const { root, end } = mount(GroupField, { group, onChange: (next: string) => told.push(next) }, (app) =>
    app.use(router),
  )
  const link = root.querySelector('a')?.getAttribute('href') ?? null
  root.querySelector<HTMLElement>('[data-test=edit-group]')?.click()
  await nextTick()
  const input = root.querySelector('input')
  if (input === null) throw new Error('the group cannot be typed')
  input.value = text
  input.dispatchEvent(new Event('input'))
  await nextTick()
  root.querySelector('form')?.dispatchEvent(new Event('submit', { cancelable: true }))
  end()
  return { told, link }
}

describe('the group of a job', () => {
  it('is given to a job that has none', async () => {
    expect(await type(null, ' lr study ')).toEqual({ told: ['lr study'], link: null })
  })

  it('leads to its jobs, and is taken away by an empty text', async () => {
    expect(await type('lr study', '')).toEqual({ told: [''], link: '/jobs?kind=all&group=lr+study' })
  })

  it('is not written again where nothing was changed', async () => {
    expect((await type('lr study', 'lr study ')).told).toEqual([])
  })
})
