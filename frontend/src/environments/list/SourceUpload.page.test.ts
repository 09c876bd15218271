import { afterEach, describe, expect, it, vi } from 'vitest'
import { h } from 'vue'

import { ApiError } from '@/api/errors'
import * as transfer from '@/api/upload/transfer'
import { mount } from '@/testing/withSetup'

import SourceUpload from './SourceUpload.vue'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

/** Files arrive at once, or are refused. */
function answerWith(outcome: string | ApiError): void {
  vi.spyOn(transfer, 'startTransfer').mockImplementation((_file, events) => ({
    start: () => Promise.resolve(outcome instanceof ApiError ? events.onError(outcome) : events.onDone(outcome)),
    pause: () => Promise.resolve(),
    discard: () => Promise.resolve(),
  }))
}

function choose(name: string): void {
  const field = document.querySelector<HTMLInputElement>('input[type=file]')
  if (field === null) throw new Error('there is no field for a file')
  const files = [new File(['{}'], name)]
  Object.defineProperty(field, 'files', { value: { item: (at: number) => files[at] ?? null } })
  field.dispatchEvent(new Event('change'))
}

describe('the upload of a file that a parameter names', () => {
  it('gives the upload as the value of the parameter', async () => {
    answerWith('up_1')
    const uploaded = vi.fn()
    const { end } = mount({ setup: () => () => h(SourceUpload, { label: 'Code', onUploaded: uploaded }) })

    choose('tools.py')

    await vi.waitFor(() => {
      expect(uploaded).toHaveBeenCalledWith('upload:up_1')
    })
    expect(document.querySelector('.name')?.textContent).toBe('tools.py')
    end()
  })

  it('says what the platform refuses', async () => {
    answerWith(new ApiError({ status: 413, code: 'upload_too_large', message: 'The file is larger than the limit.' }))
    const uploaded = vi.fn()
    const { end } = mount({ setup: () => () => h(SourceUpload, { label: 'Code', onUploaded: uploaded }) })

    choose('large.db')

    await vi.waitFor(() => {
      expect(document.querySelector('[role=alert]')?.textContent).toContain('larger than the limit')
    })
    expect(uploaded).not.toHaveBeenCalled()
    end()
  })
})
