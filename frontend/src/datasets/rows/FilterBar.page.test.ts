import { afterEach, describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'

import { ApiError } from '@/api/errors'
import { mount } from '@/testing/withSetup'

import type { DraftCondition, Unfit } from './conditions'
import FilterBar from './FilterBar.vue'

const columns = [
  { name: 'level', type: 'integer' },
  { name: 'question', type: 'text' },
]
const drafts: DraftCondition[] = [
  { column: 'question', operator: 'contains', value: 'sum' },
  { column: 'level', operator: 'eq', value: 'high' },
]
const error = new ApiError({
  code: 'search_unfit',
  status: 422,
  message: "'level' holds int64; 'eq high' does not fit.",
})

function open(unfit: Unfit | null) {
  const onSearch = vi.fn()
  const bar = mount(FilterBar, { columns, text: '', drafts, isBusy: false, unfit, onSearch })
  return {
    ...bar,
    onSearch,
    alerts: () =>
      [...bar.root.querySelectorAll('[role=alert]')].map((alert) => alert.closest('li') ?? alert.parentElement),
  }
}

afterEach(() => {
  document.body.replaceChildren()
})

describe('conditions on rows', () => {
  it('can be asked with a value that does not fit: the API says why it does not', () => {
    const { root, onSearch, end } = open(null)

    root.querySelector('form')?.dispatchEvent(new Event('submit'))

    expect(onSearch).toHaveBeenCalledWith('', drafts)
    end()
  })

  it('show at their place what the API says against one of them', () => {
    const { root, alerts, end } = open({ error, index: 1 })

    expect(alerts()).toEqual([root.querySelectorAll('li')[1]])
    expect(root.textContent).toContain("'eq high' does not fit")
    end()
  })

  it('show it under all of them where the API does not say which', () => {
    const { root, alerts, end } = open({ error, index: null })

    expect(alerts()).toEqual([root.querySelector('form')])
    end()
  })

  it('forget it when one of them is changed', async () => {
    const { root, alerts, end } = open({ error, index: 1 })
    const value = [...root.querySelectorAll<HTMLInputElement>('li .value input')].at(-1)
    if (value === undefined) throw new Error('there is no field for the value')

    value.value = '3'
    value.dispatchEvent(new Event('input'))
    await nextTick()

    expect(alerts()).toEqual([])
    end()
  })
})
