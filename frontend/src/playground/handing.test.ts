import { describe, expect, it } from 'vitest'

import { handedOf, hindering, readHanded, turnsOf } from './handing'
import { readTools } from './requestParts'

describe('a prompt from another page', () => {
  it('is the last question with all that was said before it, and without what was answered', () => {
    const turns = [
      { role: 'system', text: 'Be short.' },
      { role: 'user', text: '1+1=' },
      { role: 'assistant', text: '2' },
      { role: 'user', text: 'Sure?' },
      { role: 'assistant', text: 'Yes.' },
    ]

    expect(handedOf(turns)).toEqual({
      system: 'Be short.',
      context: [{ role: 'user', content: '1+1=' }, { role: 'assistant', content: '2' }],
      prompt: 'Sure?',
      tools: '',
    })
    expect(handedOf([{ role: 'assistant', text: 'Hello.' }])).toBeNull()
    expect(handedOf([{ role: 'tool', text: '{}' }, { role: 'user', text: 'And?' }])).toBeNull()
    expect(hindering([{ role: 'tool', text: '{}' }, { role: 'user', text: 'And?' }])).toBe('tool')
    expect([hindering(turns), hindering([{ role: 'user', text: 'Hi' }, { role: 'tool', text: '{}' }]), hindering([])]).toEqual([null, null, null])
  })

  it('takes the tools of its row along, however the row has them', () => {
    const tools = [{ type: 'function', function: { name: 'weather', description: null, parameters: { type: 'object' } } }]
    const asked = [{ role: 'user', text: 'Weather?' }]

    const { tools: spelled = '' } = handedOf(asked, tools) ?? {}
    expect(readTools(spelled)).toEqual({ value: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }], problem: null })
    expect(handedOf(asked, '[{"type": "function"}]')?.tools).toBe('[{"type": "function"}]')
    expect([null, undefined, [], '', '[]', 3].map((each) => handedOf(asked, each)?.tools)).toEqual(['', '', '', '', '', ''])
  })

  it('is read out of a rendered chat template', () => {
    expect(turnsOf('<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n1+1=\n2+2=<|im_end|>\n<|im_start|>assistant\n')).toEqual([
      { role: 'system', text: 'Be short.' },
      { role: 'user', text: '1+1=\n2+2=' },
    ])
    expect(turnsOf('<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n1+1=<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n')).toEqual([{ role: 'user', text: '1+1=' }])
    expect(turnsOf('Question: 1+1=\nAnswer:')).toEqual([{ role: 'user', text: 'Question: 1+1=\nAnswer:' }])
  })

  it('comes through the history of the browser', () => {
    const handed = { system: '', context: [{ role: 'user' as const, content: 'a' }], prompt: 'b', tools: '[1]' }

    expect(readHanded({ handed: JSON.stringify(handed) })).toEqual(handed)
    expect([readHanded(null), readHanded({}), readHanded({ handed: '{"prompt": 1}' })]).toEqual([null, null, null])
  })
})
