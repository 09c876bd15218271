import { createPinia } from 'pinia'
import { createMemoryHistory, createRouter } from 'vue-router'
import { reactive } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import { newDraft } from './draft'
import GenerationDialog from './GenerationDialog.vue'
import { keptGenerations } from './kept'

const DATASET = { id: 'ds_a', name: 'sums', state: 'ready', row_count: 4, splits: { train: 4 } }
let end = (): void => undefined

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setTimeout(resolve))
}

async function open(dataset: object | null, props: object = { show: true }): Promise<void> {
  end()
  // A dialog takes its time to leave.
  document.body.replaceChildren()
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
  end = mount(GenerationDialog, Object.assign(props, { dataset }), (app) => app.use(router).use(createPinia())).end
  await settle()
}

function chosenMethod(): string | undefined {
  return document.querySelector<HTMLElement>('.n-radio-button--checked')?.dataset.test
}
const isRestored = () => document.querySelector('[data-test=restored]') !== null

beforeEach(() => {
  window.sessionStorage.clear()
  answering('GET', () => answer(200, { items: [], next_cursor: null }))
})
afterEach(() => {
  end()
  end = () => undefined
  document.body.replaceChildren()
  vi.restoreAllMocks()
})

describe('a generation that was begun', () => {
  it('comes back as it was left, for the rows that it was begun with, until somebody starts over', async () => {
    await open(DATASET)
    expect([isRestored(), chosenMethod()]).toEqual([false, 'method-self-instruct'])
    document.querySelector<HTMLElement>('[data-test=method-rejection-sampling] input')?.click()
    await settle()

    await open(null)
    expect([isRestored(), chosenMethod()]).toEqual([false, 'method-self-instruct'])
    await open(DATASET)
    expect([isRestored(), chosenMethod()]).toEqual([true, 'method-rejection-sampling'])

    document.querySelector<HTMLElement>('[data-test=start-over]')?.click()
    await settle()
    expect([isRestored(), chosenMethod()]).toEqual([false, 'method-self-instruct'])
    await open(DATASET)
    expect(isRestored()).toBe(false)
  })

  it('can be started over where the dialog was only closed', async () => {
    const props = reactive({ show: true })
    await open(DATASET, props)
    document.querySelector<HTMLElement>('[data-test=method-rejection-sampling] input')?.click()
    await settle()
    expect(isRestored()).toBe(false)

    props.show = false
    await settle()
    props.show = true
    await settle()
    expect([isRestored(), chosenMethod()]).toEqual([true, 'method-rejection-sampling'])
    document.querySelector<HTMLElement>('[data-test=start-over]')?.click()
    await settle()
    expect([isRestored(), chosenMethod()]).toEqual([false, 'method-self-instruct'])
  })

  it('forgets a split that the version does not have', async () => {
    for (const [split, left] of [
      ['gone', null],
      ['train', 'train'],
    ] as const) {
      keptGenerations.write('ds_a', { draft: { ...newDraft('new'), split }, seeds: 'ds_a' })
      await open(DATASET, { show: true, splits: { train: 4 } })
      expect(keptGenerations.read('ds_a')?.draft.split).toBe(left)
    }
  })
})
