import { NMessageProvider } from 'naive-ui'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import RegisterDialog from './RegisterDialog.vue'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  Reflect.deleteProperty(Element.prototype, 'scrollTo')
  document.body.replaceChildren()
})

function fill(selector: string, value: string): void {
  const field = document.querySelector<HTMLInputElement>(selector)
  if (field === null) throw new Error(`no ${selector}`)
  field.value = value
  field.dispatchEvent(new Event('input'))
}

function press(label: string): void {
  const found = [...document.querySelectorAll<HTMLElement>('button, .n-tabs-tab')]
  found.find((each) => each.textContent.trim() === label)?.click()
}

/** The dialog with the fields of a hub, and what it asks for. */
async function openHub() {
  const asked = vi.fn()
  answering('GET', () => answer(200, { items: [], next_cursor: null }))
  answering('POST', ({ body }) => {
    asked(body)
    return answer(201, { id: 'mdl_1', name: 'qwen' })
  })
  const { end } = mount({ setup: () => () => h(NMessageProvider, () => h(RegisterDialog, { show: true })) })
  await vi.waitFor(() => {
    press('Hub')
    expect(document.querySelector('#model-repo')).not.toBeNull()
  })
  return { asked, end }
}

describe('a model from a hub', () => {
  it('is taken from ModelScope at its own newest state', async () => {
    const { asked, end } = await openHub()

    document.querySelector<HTMLElement>('[data-hub=modelscope] input')?.click()
    fill('#model-repo', ' Qwen/Qwen3-0.6B ')
    await vi.waitFor(() => {
      expect(document.querySelector<HTMLInputElement>('#model-name')?.value).toBe('Qwen3-0.6B')
    })
    press('Add')

    await vi.waitFor(() => {
      expect(asked).toHaveBeenCalledWith(
        expect.objectContaining({
          source: {
            kind: 'hub',
            hub: 'modelscope',
            repo_id: 'Qwen/Qwen3-0.6B',
            revision: 'master',
            file: null,
            licence: null,
          },
        }),
      )
    })
    end()
  })

  it('is taken from Hugging Face at the revision that was named', async () => {
    const { asked, end } = await openHub()

    fill('#model-repo', 'Qwen/Qwen3-0.6B')
    fill('#model-revision', 'v1')
    await vi.waitFor(() => {
      expect(document.querySelector<HTMLInputElement>('#model-name')?.value).toBe('Qwen3-0.6B')
    })
    press('Add')

    await vi.waitFor(() => {
      expect(asked).toHaveBeenCalledWith(
        expect.objectContaining({
          source: {
            kind: 'hub',
            hub: 'huggingface',
            repo_id: 'Qwen/Qwen3-0.6B',
            revision: 'v1',
            file: null,
            licence: null,
          },
        }),
      )
    })
    end()
  })

  it('has the license that was typed', async () => {
    // The list of licenses asks for what this page does not have.
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
    Object.defineProperty(Element.prototype, 'scrollTo', { value: () => undefined, configurable: true })
    const { asked, end } = await openHub()

    fill('#model-repo', 'team/bot')
    document.querySelector<HTMLElement>('[data-test=licence] .n-base-selection-label')?.click()
    await nextTick()
    fill('#model-licence', 'team-internal')
    await nextTick()
    document
      .querySelector('#model-licence')
      ?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))
    await vi.waitFor(() => {
      expect(document.querySelector<HTMLInputElement>('#model-name')?.value).toBe('bot')
    })
    press('Add')

    await vi.waitFor(() => {
      expect(asked).toHaveBeenCalled()
    })
    expect(asked.mock.calls[0]?.[0]).toMatchObject({ source: { repo_id: 'team/bot', licence: 'team-internal' } })
    end()
  })
})
