import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount, withSetup } from '@/testing/withSetup'

import ModelSelect from './ModelSelect.vue'
import { useReadyModels } from './useReadyModels'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
  window.localStorage.clear()
})

describe('the choice of a model', () => {
  it('is among all that are ready, however many pages they fill', async () => {
    answering('GET', ({ query }) => {
      expect(query.state).toBe('ready')
      return query.cursor === undefined
        ? answer(200, { items: [{ id: 'a', name: 'A' }], next_cursor: 'more' })
        : answer(200, { items: [{ id: 'b', name: 'B' }], next_cursor: null })
    })
    const { it: models, end } = withSetup(useReadyModels)

    await vi.waitFor(() => {
      expect(models.options.value).toEqual([
        { value: 'a', label: 'A' },
        { value: 'b', label: 'B' },
      ])
    })
    end()
  })

  it('says why there is none to choose from, and tries again', async () => {
    let isDown = true
    answering('GET', () =>
      isDown
        ? answer(503, { error: 'database_unavailable', message: 'The database did not answer.' })
        : answer(200, { items: [{ id: 'a', name: 'A' }], next_cursor: null }),
    )
    const chosen = vi.fn()
    const { root, end } = mount(ModelSelect, {
      label: 'Model',
      modelValue: null,
      remember: 'test.model',
      'onUpdate:modelValue': chosen,
    })
    await vi.waitFor(() => {
      expect(root.querySelector('[role=alert]')?.textContent).toContain('The database did not answer.')
    })

    isDown = false
    root.querySelector<HTMLElement>('[role=alert] button')?.click()

    await vi.waitFor(() => {
      expect(root.querySelector('[role=alert]')).toBeNull()
    })
    expect(chosen).toHaveBeenCalledWith('a')
    end()
  })
})
