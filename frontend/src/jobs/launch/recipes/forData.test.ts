import { describe, expect, it } from 'vitest'

import type { Recipe } from '../../types'
import { recipeForAll, recipeForFormat } from './forData'

const recipes = [
  { id: 'grpo', data_formats: ['prompt-answer', 'messages', 'verl-rl'] },
  { id: 'sft', data_formats: ['messages', 'prompt-answer', 'preference'] },
  { id: 'dpo', data_formats: ['preference'] },
] as Recipe[]

describe('the recipe that suits rows', () => {
  it('is supervised for conversations, which have no answer to check', () => {
    expect(recipeForFormat('messages', recipes)).toBe('sft')
  })
  it('learns from rewards where answers can be checked, and from pairs where there are pairs', () => {
    expect([recipeForFormat('prompt-answer', recipes), recipeForFormat('preference', recipes)]).toEqual(['grpo', 'dpo'])
  })
  it('is the first that reads them where the usual one is missing, and none where nothing does', () => {
    expect(recipeForFormat('messages', recipes.slice(0, 1))).toBe('grpo')
    expect([recipeForFormat('unknown', recipes), recipeForFormat(null, recipes)]).toEqual([null, null])
  })
  it('is that of the newest dataset where the usual one is that of none', () => {
    expect(recipeForAll(['messages', 'preference'], recipes, 'grpo')).toBe('sft')
    expect(recipeForAll(['messages', 'prompt-answer'], recipes, 'grpo')).toBe('grpo')
    expect([recipeForAll([], recipes, 'grpo'), recipeForAll([null, 'unknown'], recipes, 'grpo')]).toEqual([
      'grpo',
      'grpo',
    ])
  })
})
