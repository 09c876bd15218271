import { afterEach, describe, expect, it, vi } from 'vitest'
import { nextTick, reactive } from 'vue'

import { mount } from '@/testing/withSetup'
import type { IssueMap } from '@/ui/form/issues'

import MapField from './MapField.vue'
import { readParams } from './schema'
import SchemaForm from './SchemaForm.vue'

const params = readParams({
  properties: {
    mark: { type: 'string', default: '***' },
    bounds: { type: 'object', properties: { low: { type: 'string', default: '' } } },
    schema: { default: null },
  },
})

function type(field: Element | null | undefined, text: string): void {
  if (!(field instanceof HTMLInputElement) && !(field instanceof HTMLTextAreaElement))
    throw new Error('there is no such field')
  field.value = text
  field.dispatchEvent(new Event('input'))
}

function openForm(issues: IssueMap = new Map()) {
  const onChange = vi.fn()
  const onProblem = vi.fn()
  const form = mount(SchemaForm, {
    params,
    values: { mark: 'x' },
    field: 'steps.0.params',
    issues,
    onChange,
    onProblem,
  })
  return {
    ...form,
    onChange,
    onProblem,
    field: (name: string) => form.root.querySelector(`[data-field="steps.0.params.${name}"]`),
  }
}

afterEach(() => {
  document.body.replaceChildren()
})

describe('the form of a step', () => {
  it('sets parameters, and parameters in parameters, beside those that are set', () => {
    const { field, onChange, end } = openForm()

    type(field('mark')?.querySelector('input'), '#')
    type(field('bounds.low')?.querySelector('input'), '3')

    expect(onChange.mock.calls).toEqual([[{ mark: '#' }], [{ mark: 'x', bounds: { low: '3' } }]])
    end()
  })

  it('takes what an error suggests, in its own field and in one inside it', () => {
    const wrong = (name: string, suggestion: string): [string, never] => {
      const field = `steps.0.params.${name}`
      return [
        field,
        [{ code: 'invalid_value', field, message: 'It is wrong.', suggestion, severity: 'error' }] as never,
      ]
    }
    const { field, onChange, end } = openForm(new Map([wrong('mark', '###'), wrong('bounds.low', '7')]))

    const offered = (name: string) =>
      [...(field(name)?.querySelectorAll('button') ?? [])].find((button) => button.textContent?.match(/###|7/))
    offered('mark')?.click()
    offered('bounds.low')?.click()

    expect(onChange.mock.calls).toEqual([[{ mark: '###' }], [{ mark: 'x', bounds: { low: '7' } }]])
    end()
  })

  it('tells of a field that cannot be read, and takes it back when the form goes', () => {
    const { field, onProblem, end } = openForm()

    type(field('schema')?.querySelector('textarea'), '{')
    end()

    expect(onProblem.mock.calls).toEqual([
      ['steps.0.params.schema', true],
      ['steps.0.params.schema', false],
    ])
  })
})

describe('names with values', () => {
  function openMap() {
    const told: boolean[] = []
    const props = reactive({
      value: { train: 0.9 } as Record<string, unknown>,
      items: 'number',
      label: 'Ratios',
      canBeNull: false,
      onProblem: (has: boolean) => told.push(has),
    })
    const { root, end } = mount(MapField, props)
    return {
      props,
      told,
      end,
      values: () => [...root.querySelectorAll('input')].map((input) => input.value),
      input: (at: number) => root.querySelectorAll('input')[at],
    }
  }

  it('keep what cannot be read while something else changes', async () => {
    const { props, told, values, input, end } = openMap()
    type(input(1), 'most')

    props.value = { train: 0.9 }
    await nextTick()

    expect([values(), told]).toEqual([['train', 'most'], [true]])
    end()
  })

  it('take over what is set from outside in place of what cannot be read', async () => {
    const { props, told, values, input, end } = openMap()
    type(input(1), 'most')

    props.value = { train: 0.5 }
    await nextTick()

    expect([values(), told]).toEqual([
      ['train', '0.5'],
      [true, false],
    ])
    end()
  })
})
