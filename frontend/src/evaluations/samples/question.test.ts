import { describe, expect, it } from 'vitest'

import { questionsOf } from './question'

const asked = (question: string) =>
  `<|im_start|>system\nSolve it.<|im_end|>\n<|im_start|>user\n${question}\nThink step by step.<|im_end|>\n<|im_start|>assistant\n`

describe('the question of a sample', () => {
  it('is the prompt without what all prompts share', () => {
    expect(questionsOf([asked('What is 1 + 2?'), asked('What is 7 + 5?'), asked('What is 1 + 2?')])).toEqual([
      'What is 1 + 2?',
      'What is 7 + 5?',
      'What is 1 + 2?',
    ])
  })

  it('keeps the words with which all questions begin and end', () => {
    expect(questionsOf(['How many apples are there?', 'How many pears are there?'])).toEqual([
      'How many apples are there?',
      'How many pears are there?',
    ])
  })

  it('begins at its beginning, however long it is', () => {
    const [long = ''] = questionsOf([asked(`Ann has ${'many '.repeat(90)}apples.`), asked('Bob?')])
    expect(long.startsWith('Ann has many')).toBe(true)
    expect(long.endsWith('…')).toBe(true)
  })

  it('is the end of a prompt that stands alone, and of a long one', () => {
    expect(questionsOf(['Q: one?'])).toEqual(['Q: one?'])
    const [long = ''] = questionsOf(['x'.repeat(1000), 'y'])
    expect(long).toHaveLength(101)
    expect(questionsOf([])).toEqual([])
  })
})
