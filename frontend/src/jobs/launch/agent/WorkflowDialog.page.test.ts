import { NMessageProvider } from 'naive-ui'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import WorkflowDialog from './WorkflowDialog.vue'

afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

/** The dialog, open, where the page would have it. */
function open(listeners: Record<string, unknown>) {
  return mount({ setup: () => () => h(NMessageProvider, () => h(WorkflowDialog, { show: true, ...listeners })) })
}

function fill(): void {
  const name = document.querySelector<HTMLInputElement>('form input[autocomplete=off]')
  if (name === null) throw new Error('the dialog has no field for the name')
  name.value = 'mine'
  name.dispatchEvent(new Event('input'))
}

describe('the dialog that takes a workflow', () => {
  it('lists every fault that the platform found, and stays', async () => {
    const faults = ['Line 1: workflow must be async.', 'Line 2: the function must be async def judge(task, response).']
    const details = faults.map((message) => ({ code: 'invalid_code', field: 'code', message }))
    answering('POST', () => answer(422, { error: 'workflow_invalid', message: 'The file has 2 faults.', details }))
    const shown = vi.fn()
    const { end } = open({ 'onUpdate:show': shown })
    await vi.waitFor(fill)

    document.querySelector('form')?.dispatchEvent(new Event('submit', { cancelable: true }))

    await vi.waitFor(() => {
      const listed = [...document.querySelectorAll('[data-test=code-faults] li')].map((item) => item.textContent)
      expect(listed).toEqual(faults)
    })
    const alerts = [...document.querySelectorAll('form [role=alert]')]
    expect(alerts).toHaveLength(1)
    expect(alerts[0]?.textContent).toContain('The file has 2 errors and was not saved:')
    expect(shown).not.toHaveBeenCalled()
    end()
  })

  it('closes with the workflow that was kept, and is empty again', async () => {
    const workflow = {
      id: 'wfl_1',
      name: 'mine',
      function: 'workflow',
      sha256: '',
      size_bytes: 1,
      created_at: '2026-01-01T00:00:00Z',
    }
    let sent: unknown = null
    answering('POST', ({ body }) => {
      sent = body
      return answer(201, workflow)
    })
    const shown = vi.fn()
    const added = vi.fn()
    const { end } = open({ 'onUpdate:show': shown, onAdded: added })
    await vi.waitFor(fill)

    document.querySelector('form')?.dispatchEvent(new Event('submit', { cancelable: true }))

    await vi.waitFor(() => {
      expect(added).toHaveBeenCalledWith(workflow)
    })
    expect(shown).toHaveBeenCalledWith(false)
    expect(sent).toMatchObject({ name: 'mine' })
    await vi.waitFor(() => {
      expect(document.querySelector<HTMLInputElement>('form input[autocomplete=off]')?.value ?? '').toBe('')
    })
    end()
  })
})
