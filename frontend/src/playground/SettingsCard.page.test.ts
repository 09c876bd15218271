import { afterEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick, ref } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import SettingsCard from './SettingsCard.vue'
import { DEFAULTS, type Settings } from './types'

afterEach(() => {
  vi.restoreAllMocks()
})

function show(changes: Partial<Settings>) {
  const settings = ref<Settings>({ ...DEFAULTS, ...changes })
  const page = {
    setup: () => () =>
      h(SettingsCard, {
        modelValue: settings.value,
        'onUpdate:modelValue': (changed: Settings) => (settings.value = changed),
      }),
  }
  return { settings, ...mount(page) }
}

describe('the settings of the playground', () => {
  it('say beside the field what is wrong with a schema', async () => {
    const { settings, root, end } = show({ format: 'schema' })
    const field = root.querySelector('[data-test=schema]')
    const area = field?.querySelector('textarea')
    expect(field?.querySelector('[data-test=problem]')?.textContent).toBe('Enter a JSON schema.')

    if (area != null) area.value = '{"type": "object"}'
    area?.dispatchEvent(new Event('input'))
    await nextTick()

    expect(settings.value.schema).toBe('{"type": "object"}')
    expect(field?.querySelector('[data-test=problem]')?.textContent).toBe('')
    expect(area?.getAttribute('aria-invalid')).toBe('false')
    end()
  })

  it('offer the tools of environments that can be called', async () => {
    const tool = { name: 'weather', description: 'Looks.', parameters: { type: 'object' } }
    answering('GET', () =>
      answer(200, {
        items: [
          { id: 'env_1', name: 'in the making', can_call: false, tools: [tool] },
          { id: 'env_2', name: 'station', can_call: true, tools: [tool] },
        ],
        next_cursor: null,
      }),
    )
    const { root, end } = show({})
    root.querySelector<HTMLElement>('[data-test=tools-of-environment]')?.click()
    await vi.waitFor(() => {
      expect(root.querySelector('[data-test=tools-choice]')).not.toBeNull()
    })
    end()
  })

  it('fold how tokens are sampled, as long as nothing is set there', async () => {
    const folded = show({})
    const more = folded.root.querySelector<HTMLDetailsElement>('[data-test=more]')
    expect(more?.open).toBe(false)
    const field = more?.querySelector<HTMLTextAreaElement>('[data-test=stop] textarea')
    const type = async (text: string) => {
      if (field != null) field.value = text
      field?.dispatchEvent(new Event('input'))
      await nextTick()
    }
    await type('User:')
    expect(folded.settings.value.stop).toBe('User:')
    await type('b'.repeat(257))
    expect([more?.open, more?.querySelector('[data-test=problem]')?.textContent]).toEqual([
      true,
      'Stop sequence 1 is longer than 256 characters.',
    ])
    folded.end()

    const open = show({ topK: 20, presencePenalty: -0.5 })
    expect(open.root.querySelector<HTMLDetailsElement>('[data-test=more]')?.open).toBe(true)
    expect(
      ['top-k', 'min-p', 'presence-penalty', 'frequency-penalty'].map(
        (name) => open.root.querySelector<HTMLInputElement>(`[data-test=${name}] input`)?.value,
      ),
    ).toEqual(['20', '0', '-0.5', '0'])
    open.end()
  })

  it('open it for a conversation that comes with such settings', async () => {
    const { settings, root, end } = show({})
    const more = root.querySelector<HTMLDetailsElement>('[data-test=more]')
    settings.value = { ...settings.value, topK: 20 }
    await nextTick()
    expect(more?.open).toBe(true)
    end()
  })

  it('name the tool that is wrong', () => {
    const { root, end } = show({ tools: '[{"type": "function", "function": {"name": "the weather"}}]' })
    const field = root.querySelector('[data-test=tools]')

    expect(field?.querySelector('[data-test=problem]')?.textContent).toContain('The name of tool 1 must be')
    expect(field?.querySelector('textarea')?.getAttribute('aria-invalid')).toBe('true')
    expect(root.querySelector('[data-test=schema]')).toBeNull()
    end()
  })
})
