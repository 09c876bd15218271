import { afterEach, describe, expect, it, vi } from 'vitest'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import EnvironmentResult from './EnvironmentResult.vue'

afterEach(() => {
  vi.restoreAllMocks()
})

function environment(id: string, tool: string, canCall = true) {
  return { id, name: `environment ${id}`, can_call: canCall, tools: [{ name: tool, description: '', parameters: {} }] }
}

/** The API: three environments, and a call that is over at the second look. */
function answeringCalls(end: Record<string, unknown>) {
  const sent: unknown[] = []
  let looks = 0
  answering('GET', ({ path }) => {
    if (path === '/api/v1/environments')
      return answer(200, {
        items: [environment('a', 'other'), environment('b', 'weather', false), environment('c', 'weather')],
        next_cursor: null,
      })
    looks += 1
    return answer(
      200,
      looks === 1 ? { id: 'ecl_1', state: 'queued', result: null, error: null } : { id: 'ecl_1', ...end },
    )
  })
  answering('POST', ({ parts, body }) => {
    sent.push([parts, body])
    return answer(202, { id: 'ecl_1' })
  })
  return sent
}

function show(given = '{"city":"Oslo"}') {
  const results: string[] = []
  const mounted = mount(EnvironmentResult, {
    call: { id: 'call_1', name: 'weather', arguments: given },
    isBusy: false,
    onResult: (text: string) => results.push(text),
  })
  const find = (name: string) => mounted.root.querySelector<HTMLElement>(`[data-test=${name}]`)
  find('use-environment')?.click()
  return { ...mounted, results, find }
}

describe('a tool call in an environment', () => {
  it('is run in one that has the tool, and its result is what the model would see', async () => {
    const sent = answeringCalls({ state: 'succeeded', result: { temperature: -4 }, error: null })
    const { find, results, end } = show()
    await vi.waitFor(() => {
      expect(find('run-call')).not.toBeNull()
    })
    expect(find('environment')?.textContent).toContain('environment c')
    find('run-call')?.click()
    await vi.waitFor(() => {
      expect(results).toEqual(['{"temperature":-4}'])
    }, 3000)

    expect(sent).toEqual([[{ environment_id: 'c' }, { tool: 'weather', arguments: { city: 'Oslo' } }]])
    end()
  })

  it('says why it failed, and leaves the result to be typed', async () => {
    answeringCalls({ state: 'failed', result: null, error: null, reason: 'The sandbox is full.' })
    const { root, find, results, end } = show()
    await vi.waitFor(() => {
      expect(find('run-call')).not.toBeNull()
    })
    find('run-call')?.click()
    await vi.waitFor(() => {
      expect(root.querySelector('[role=alert]')?.textContent).toBe('The call failed: The sandbox is full.')
    }, 3000)

    expect(results).toEqual([])
    end()
  })

  it('is not run with arguments that are no object', async () => {
    answeringCalls({})
    const { root, find, end } = show('Oslo')
    await vi.waitFor(() => {
      expect(root.textContent).toContain('not a JSON object')
    })

    expect(find('run-call')).toBeNull()
    end()
  })
})
