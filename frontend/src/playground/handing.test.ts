import { describe, expect, it } from 'vitest'

import { handedOf, hindering, readHanded, readPrompt } from './handing'
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
      context: [
        { role: 'user', content: '1+1=' },
        { role: 'assistant', content: '2' },
      ],
      prompt: 'Sure?',
      tools: '',
    })
    expect(handedOf([{ role: 'assistant', text: 'Hello.' }])).toBeNull()
    expect(
      handedOf([
        { role: 'tool', text: '{}' },
        { role: 'user', text: 'And?' },
      ]),
    ).toBeNull()
    expect(
      hindering([
        { role: 'tool', text: '{}' },
        { role: 'user', text: 'And?' },
      ]),
    ).toBe('tool')
    expect([
      hindering(turns),
      hindering([
        { role: 'user', text: 'Hi' },
        { role: 'tool', text: '{}' },
      ]),
      hindering([]),
    ]).toEqual([null, null, null])
  })

  it('takes the tools of its row along, however the row has them', () => {
    const tools = [
      { type: 'function', function: { name: 'weather', description: null, parameters: { type: 'object' } } },
    ]
    const asked = [{ role: 'user', text: 'Weather?' }]

    const { tools: spelled = '' } = handedOf(asked, tools) ?? {}
    expect(readTools(spelled)).toEqual({
      value: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
      problem: null,
    })
    expect(handedOf(asked, '[{"type": "function"}]')?.tools).toBe('[{"type": "function"}]')
    expect([null, undefined, [], '', '[]', 3].map((each) => handedOf(asked, each)?.tools)).toEqual([
      '',
      '',
      '',
      '',
      '',
      '',
    ])
  })

  it.each([
    [
      'ChatML',
      '<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n1+1=\n2+2=<|im_end|>\n<|im_start|>assistant\n',
    ],
    [
      'Phi-4',
      '<|im_start|>system<|im_sep|>Be short.<|im_end|><|im_start|>user<|im_sep|>1+1=\n2+2=<|im_end|><|im_start|>assistant<|im_sep|>',
    ],
    [
      'Llama 3',
      '<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe short.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n1+1=\n2+2=<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    ],
    ['Phi-3', '<|system|>\nBe short.<|end|>\n<|user|>\n1+1=\n2+2=<|end|>\n<|assistant|>\n'],
    ['Zephyr', '<|system|>\nBe short.</s>\n<|user|>\n1+1=\n2+2=</s>\n<|assistant|>\n'],
    ['GLM', '[gMASK]<sop><|system|>\nBe short.<|user|>\n1+1=\n2+2=<|assistant|>'],
    ['Mistral', '<s>[SYSTEM_PROMPT]Be short.[/SYSTEM_PROMPT][INST]1+1=\n2+2=[/INST]'],
    ['Llama 2', '<s>[INST] <<SYS>>\nBe short.\n<</SYS>>\n\n1+1=\n2+2= [/INST]'],
  ])('is read out of the chat template of %s', (_, prompt) => {
    expect(readPrompt(prompt)).toEqual({
      turns: [
        { role: 'system', text: 'Be short.' },
        { role: 'user', text: '1+1=\n2+2=' },
      ],
      unknown: null,
    })
  })

  it.each([
    [
      'Gemma',
      '<bos><start_of_turn>user\n1+1=<end_of_turn>\n<start_of_turn>model\n2<end_of_turn>\n<start_of_turn>user\nSure?<end_of_turn>\n<start_of_turn>model\n',
    ],
    ['Mistral', '<s>[INST] 1+1= [/INST] 2</s>[INST] Sure? [/INST]'],
    ['Phi-3', '<|user|>\n1+1=<|end|>\n<|assistant|>\n2<|end|>\n<|user|>\nSure?<|end|>\n<|assistant|>\n'],
  ])('has the turns before it in the template of %s', (_, prompt) => {
    expect(handedOf(readPrompt(prompt).turns)).toMatchObject({
      context: [
        { role: 'user', content: '1+1=' },
        { role: 'assistant', content: '2' },
      ],
      prompt: 'Sure?',
    })
  })

  it('is all there is where nothing is marked, and says which mark is not known', () => {
    const few = 'Question: 1+1=\nAnswer:'

    for (const prompt of [few, `<|begin_of_text|>${few}`, `<s>${few}`])
      expect(readPrompt(prompt)).toEqual({ turns: [{ role: 'user', text: few }], unknown: null })
    for (const text of ['Is <b>1</b> < 2 |> 3?', 'x = [INSTALL]; y[0]', 'f<int>(a)'])
      expect(readPrompt(text).unknown).toBeNull()
    expect(readPrompt('<｜begin▁of▁sentence｜><｜User｜>1+1=<｜Assistant｜>').unknown).toBe('<｜begin▁of▁sentence｜>')
    expect(readPrompt('<|start_of_role|>user<|end_of_role|>1+1=<|end_of_text|>').unknown).toBe('<|start_of_role|>')
    expect(readPrompt('<bos><|turn>user\n1+1=<turn|>\n').unknown).toBe('<|turn>')
  })

  it('comes through the history of the browser', () => {
    const handed = { system: '', context: [{ role: 'user' as const, content: 'a' }], prompt: 'b', tools: '[1]' }

    expect(readHanded({ handed: JSON.stringify(handed) })).toEqual(handed)
    expect([readHanded(null), readHanded({}), readHanded({ handed: '{"prompt": 1}' })]).toEqual([null, null, null])
  })
})
