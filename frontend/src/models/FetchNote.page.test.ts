import { describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import FetchNote from './FetchNote.vue'

describe('a download that is under way', () => {
  it('says how far it is, and can be canceled', () => {
    const cancel = vi.fn()
    const progress = { stage: 'downloading', done_bytes: 512, total_bytes: 1024 }
    const { root, end } = mount(FetchNote, { progress, isBusy: false, onCancel: cancel })

    root.querySelector<HTMLElement>('[data-test=cancel-fetch]')?.click()

    expect(root.textContent).toContain('512 B of 1')
    expect(cancel).toHaveBeenCalledOnce()
    end()
  })
})
