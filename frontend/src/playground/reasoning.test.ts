import { expect, it } from 'vitest'

import { splitThoughts } from './reasoning'

it.each([
  ['4', null, true, '4'],
  ['<think>\n2+2 is\n</think>\n\n4', '2+2 is', true, '4'],
  ['<think>\n2+2', '2+2', false, ''],
  ['2+2 is\n</think>\n4', '2+2 is', true, '4'],
  ['<think>\n\n</think>\n\n4', null, true, '4'],
  ['Tags: <think> and </think>.', null, true, 'Tags: <think> and </think>.'],
])('tells the thoughts of %j apart', (text, thoughts, isOver, answer) => {
  expect(splitThoughts(text)).toEqual({ thoughts, isOver, answer })
})
