import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Component, h } from 'vue'

import { mount } from '@/testing/withSetup'

import { readParams } from './schema'
import SchemaField from './SchemaField.vue'

const [steps, model] = readParams({
  properties: {
    steps: { type: 'integer', minimum: 1, default: 10, unit: 'steps', auto: 'batch' },
    model: { type: 'string', source: 'models' },
  },
  required: ['model'],
})

function open(props: Record<string, unknown>, slots: Record<string, () => unknown> = {}) {
  const listeners = { onChange: vi.fn(), onApply: vi.fn() }
  const { root, end } = mount({
    render: () =>
      h(
        SchemaField as Component,
        { field: 'params.it', issues: new Map(), isSet: false, ...props, ...listeners },
        slots,
      ),
  })
  return { root, end, ...listeners }
}

afterEach(() => {
  document.body.replaceChildren()
})

describe('the field of a parameter', () => {
  it('leads back to what holds without a choice, which a preset may have set', () => {
    const { root, end, onChange } = open({ param: steps, value: 7, isSet: true, inherited: 20 })

    expect(root.textContent).toContain('20')
    root.querySelector<HTMLElement>('button')?.click()

    expect(onChange.mock.calls).toEqual([[20]])
    end()
  })

  it('says its bounds, and that it must be given', () => {
    const bounded = open({ param: steps, value: 7 })
    const required = open({ param: model, value: null })

    expect(bounded.root.textContent).toContain('At least 1.')
    expect(required.root.textContent).toContain('Required.')
    bounded.end()
    required.end()
  })

  it('has the control of its page in place of its own, with label and issues around it', () => {
    const issue = { code: 'unknown', field: 'params.it', message: 'no', suggestion: 'yes', severity: 'error' }
    const { root, end, onApply } = open(
      { param: model, value: null, issues: new Map([['params.it', [issue]]]) },
      { control: () => h('i', 'own') },
    )

    expect(root.querySelector('i')?.textContent).toBe('own')
    expect(root.querySelector('input')).toBeNull()
    root.querySelector<HTMLElement>('.use')?.click()
    expect(onApply.mock.calls).toEqual([[issue]])
    end()
  })
})
