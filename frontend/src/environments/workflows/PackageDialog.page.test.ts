import { NMessageProvider } from 'naive-ui'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h } from 'vue'

import * as transfer from '@/api/upload/transfer'
import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import PackageDialog from './PackageDialog.vue'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

function open(listeners: Record<string, unknown>) {
  return mount({ setup: () => () => h(NMessageProvider, () => h(PackageDialog, { show: true, ...listeners })) })
}

/** Chooses files as a person would: an input cannot be filled by a page. */
function choose(selector: string, files: File[]): void {
  const field = document.querySelector<HTMLInputElement>(selector)
  if (field === null) throw new Error(`there is no ${selector}`)
  Object.defineProperty(field, 'files', {
    value: Object.assign([...files], { item: (at: number) => files[at] ?? null }),
  })
  field.dispatchEvent(new Event('change'))
}

function inFolder(path: string): File {
  const file = new File(['pass'], path.split('/').at(-1) ?? '')
  Object.defineProperty(file, 'webkitRelativePath', { value: path })
  return file
}

/** Files arrive at once, under one id. */
function takeFiles(): File[] {
  const sent: File[] = []
  vi.spyOn(transfer, 'startTransfer').mockImplementation((file, events) => {
    sent.push(file)
    return {
      start: () => Promise.resolve(events.onDone('up_1')),
      pause: () => Promise.resolve(),
      discard: () => Promise.resolve(),
    }
  })
  return sent
}

describe('the dialog that takes a package', () => {
  it('sends a chosen folder as an archive under the name of the folder', async () => {
    const files = takeFiles()
    const workflow = {
      id: 'wfl_1',
      name: 'agent',
      function: 'workflow',
      state: 'queued',
      sha256: '',
      size_bytes: 1,
      created_at: '2026-01-01T00:00:00Z',
    }
    let body: unknown = null
    answering('POST', (request) => {
      body = request.body
      return answer(201, workflow)
    })
    const added = vi.fn()
    const { end } = open({ onAdded: added })
    await vi.waitFor(() => {
      choose('[data-test=folder-input]', [inFolder('agent/workflow.py'), inFolder('agent/.git/config')])
    })
    await vi.waitFor(() => {
      expect(document.querySelector('[data-test=chosen]')?.textContent).toContain('agent.tar')
    })

    document.querySelector('form')?.dispatchEvent(new Event('submit', { cancelable: true }))

    await vi.waitFor(() => {
      expect(added).toHaveBeenCalledOnce()
    })
    expect(files.map(({ name, size }) => [name, size])).toEqual([['agent.tar', 512 + 512 + 1024]])
    expect(body).toEqual({ name: 'agent', upload: 'up_1' })
    end()
  })

  it('lists what is wrong with a package, and stays', async () => {
    takeFiles()
    const faults = ['The package has no workflow.py at its top: it holds the workflow.']
    const details = faults.map((message) => ({ code: 'invalid_code', field: 'code', message }))
    answering('POST', () => answer(422, { error: 'workflow_invalid', message: faults[0], details }))
    const shown = vi.fn()
    const { end } = open({ 'onUpdate:show': shown })
    await vi.waitFor(() => {
      choose('[data-test=archive-input]', [new File(['x'], 'mine.tar.gz')])
    })
    await vi.waitFor(() => {
      expect(document.querySelector('[data-test=chosen]')).not.toBeNull()
    })

    document.querySelector('form')?.dispatchEvent(new Event('submit', { cancelable: true }))

    await vi.waitFor(() => {
      expect([...document.querySelectorAll('[data-test=package-faults] li')].map((item) => item.textContent)).toEqual(
        faults,
      )
    })
    expect(shown).not.toHaveBeenCalled()
    end()
  })
})
