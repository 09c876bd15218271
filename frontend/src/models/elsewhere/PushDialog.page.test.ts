import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import PushDialog from './PushDialog.vue'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

function fill(selector: string, value: string): void {
  const field = document.querySelector<HTMLInputElement>(selector)
  if (field === null) throw new Error(`no ${selector}`)
  field.value = value
  field.dispatchEvent(new Event('input'))
}

describe('a push', () => {
  it('takes a card that somebody has edited', async () => {
    const asked = vi.fn()
    answering('POST', ({ body }) => {
      asked(body)
      return answer(201, {})
    })
    const { end } = mount(PushDialog, { modelId: 'mdl_1', show: true })
    await vi.waitFor(() => {
      fill('#push-repo', 'team/bot')
    })

    const picker = document.querySelector<HTMLInputElement>('input[type=file]')
    if (picker === null) throw new Error('no field for the card')
    Object.defineProperty(picker, 'files', {
      value: { item: () => ({ name: 'README.md', text: () => Promise.resolve('# Mine') }) },
    })
    picker.dispatchEvent(new Event('change'))
    await vi.waitFor(() => {
      expect(document.body.textContent).toContain('README.md')
    })
    const push = [...document.querySelectorAll('button')].find((button) => button.textContent.trim() === 'Push')
    push?.click()

    await vi.waitFor(() => {
      expect(asked).toHaveBeenCalledWith(expect.objectContaining({ repo_id: 'team/bot', card: '# Mine' }))
    })
    end()
  })

  it('goes to ModelScope, which has one branch', async () => {
    const asked = vi.fn()
    answering('POST', ({ body }) => {
      asked(body)
      return answer(201, {})
    })
    const { end } = mount(PushDialog, { modelId: 'mdl_1', show: true })
    await vi.waitFor(() => {
      fill('#push-repo', 'team/bot')
    })
    fill('#push-revision', 'v2')

    document.querySelector<HTMLElement>('[data-hub=modelscope] input')?.click()
    await vi.waitFor(() => {
      expect(document.querySelector('#push-revision')).toBeNull()
      expect(document.body.textContent).toContain('MODELSCOPE_API_TOKEN')
    })
    const push = [...document.querySelectorAll('button')].find((button) => button.textContent.trim() === 'Push')
    push?.click()

    await vi.waitFor(() => {
      expect(asked).toHaveBeenCalledWith(
        expect.objectContaining({ hub: 'modelscope', repo_id: 'team/bot', revision: 'master' }),
      )
    })
    end()
  })
})
