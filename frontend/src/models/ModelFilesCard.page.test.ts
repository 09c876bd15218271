import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import ModelFilesCard from './ModelFilesCard.vue'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

describe('the files of a model', () => {
  it('are read when they are opened, with their sizes and a link each', async () => {
    const asked = vi.fn()
    const items = [
      { name: 'config.json', size_bytes: 512 },
      { name: '1_Pooling/config.json', size_bytes: 2048 },
    ]
    answering('GET', ({ path, parts }) => {
      asked(path, parts)
      return answer(200, { items, size_bytes: 2560, archive_bytes: 4096 })
    })
    const { root, end } = mount(ModelFilesCard, { modelId: 'mdl_1' })
    expect(asked).not.toHaveBeenCalled()

    root.querySelector<HTMLElement>('[data-test=files]')?.click()

    await vi.waitFor(() => {
      expect(root.querySelectorAll('li')).toHaveLength(2)
    })
    expect(asked).toHaveBeenCalledWith('/api/v1/models/{model_id}/files', { model_id: 'mdl_1' })
    const links = [...root.querySelectorAll('a')]
    expect(links.map((link) => [link.getAttribute('href'), link.hasAttribute('download')])).toEqual([
      ['/api/v1/models/mdl_1/files/config.json', true],
      ['/api/v1/models/mdl_1/files/1_Pooling/config.json', true],
    ])
    expect(root.querySelector('li .muted')?.textContent).toContain('512')
    end()
  })
})
