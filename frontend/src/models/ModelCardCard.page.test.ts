import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import ModelCardCard from './ModelCardCard.vue'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

describe('the card of a model', () => {
  it('is read when it is opened, and shown without its front matter', async () => {
    const asked = vi.fn()
    answering('GET', ({ path }) => {
      asked(path)
      return answer(
        200,
        '---\nlicense: mit\n---\n\n<!-- trellis -->\n\n# made\n\n| metric | value |\n|---|---|\n| `loss` | [1.25](https://platform.test/jobs/job_1) |\n',
      )
    })
    const { root, end } = mount(ModelCardCard, { modelId: 'mdl_1' })
    expect(asked).not.toHaveBeenCalled()

    root.querySelector<HTMLElement>('[data-test=card]')?.click()

    await vi.waitFor(() => {
      expect(root.querySelector('table a')?.textContent).toBe('1.25')
    })
    expect(root.textContent).not.toContain('license')
    expect(root.textContent).not.toContain('<!--')
    end()
  })
})
