import { describe, expect, it } from 'vitest'

import type { DataFit, Recipe } from '../../types'
import { betterRecipe, recipeForAll, recipeForFormat, usualRecipes } from './forData'

const recipes = [
  { id: 'agent_grpo', family: 'agent', row_format: 'verl-rl', data_formats: ['messages'] },
  { id: 'grpo', family: 'rl', row_format: 'verl-rl', data_formats: ['prompt-answer', 'messages', 'verl-rl'] },
  {
    id: 'sft',
    family: 'supervised',
    row_format: 'messages',
    data_formats: ['messages', 'prompt-answer', 'preference'],
  },
  { id: 'orpo', family: 'preference', row_format: 'preference', data_formats: ['preference'] },
  { id: 'dpo', family: 'preference', row_format: 'preference', data_formats: ['preference'] },
] as Recipe[]

describe('the recipe that suits rows', () => {
  it('is supervised for conversations, which have no answer to check', () => {
    expect(recipeForFormat('messages', recipes)).toBe('sft')
  })
  it('learns from rewards where answers can be checked, and from pairs where there are pairs', () => {
    expect([recipeForFormat('prompt-answer', recipes), recipeForFormat('preference', recipes)]).toEqual(['grpo', 'dpo'])
  })
  it('is the first that reads them where the usual one is missing, and none where nothing does', () => {
    expect(recipeForFormat('messages', recipes.slice(1, 2))).toBe('grpo')
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

describe('the recipes that are usual for rows', () => {
  it('come in the order of their use, as far as there are any', () => {
    const idsOf = (format: string | null) => usualRecipes(format, recipes).map(({ id }) => id)

    expect(['prompt-answer', 'preference', 'messages', 'text', 'unknown', null].map(idsOf)).toEqual([
      ['grpo', 'sft'],
      ['dpo', 'orpo'],
      ['sft'],
      [],
      [],
      [],
    ])
  })
})

describe('a recipe that is offered instead of the chosen one', () => {
  const converted = { conversion: {} as DataFit['conversion'], fits: true }
  const unreadable = { conversion: null, fits: false }
  it.each([
    ['grpo', 'messages', converted, 'sft'],
    ['grpo', 'preference', unreadable, 'dpo'],
    ['dpo', 'messages', unreadable, 'sft'],
    ['dpo', 'prompt-answer', unreadable, 'grpo'],
    ['sft', 'preference', converted, 'dpo'],
    // Questions are converted for everything, and other recipes for pairs suit pairs, too.
    ['sft', 'prompt-answer', converted, null],
    ['orpo', 'preference', { conversion: null, fits: true }, null],
    ['agent_grpo', 'messages', converted, null],
    // What is wrong with a row is wrong for every recipe; of rows that nobody knows nothing is known.
    ['orpo', 'preference', unreadable, null],
    ['dpo', 'unknown', unreadable, null],
  ] as const)('than %s for %s', (current, found, fit, offered) => {
    const chosen = recipes.find(({ id }) => id === current)

    expect(chosen && (betterRecipe({ found, ...fit }, chosen, recipes)?.id ?? null)).toBe(offered)
  })
})
