import { describe, expect, it } from 'vitest'

import type { Recipe } from '../../types'
import { firstSentence, groupRecipes, matchesRecipe } from './grouping'

function recipeOf(id: string, family: Recipe['family'], part: Partial<Recipe> = {}): Recipe {
  return {
    id,
    family,
    engine: 'trl',
    title: { en: id.toUpperCase(), zh: id },
    description: { en: 'Learns. Well.', zh: '学习。很好。' },
    paper: null,
    is_experimental: false,
    row_format: 'preference',
    data_formats: ['preference'],
    headline_metrics: [],
    fixed: {},
    parameters: [],
    presets: [],
    ...part,
  }
}

const recipes = [
  recipeOf('orpo', 'preference', { is_experimental: true }),
  recipeOf('dpo', 'preference', {
    paper: { title: 'Your Language Model is Secretly a Reward Model', arxiv: '2305.18290', year: 2023 },
  }),
  recipeOf('sft', 'supervised'),
]

describe('recipes to choose from', () => {
  it('stand by family, experimental ones last', () => {
    const groups = groupRecipes(recipes, '').map(({ family, recipes: list }) => [family, list.map((one) => one.id)])

    expect(groups).toEqual([
      ['supervised', ['sft']],
      ['preference', ['dpo', 'orpo']],
    ])
  })

  it('are found by words of the paper, in any order', () => {
    expect(groupRecipes(recipes, 'reward secretly').flatMap((group) => group.recipes.map((one) => one.id))).toEqual([
      'dpo',
    ])
    expect(recipes.filter((one) => matchesRecipe(one, '2305.18290'))).toHaveLength(1)
    expect(groupRecipes(recipes, 'tabular')).toEqual([])
  })

  it.each([
    ['Learns from pairs. Then stops.', 'Learns from pairs.'],
    ['Clip ratio of 0.2 is usual. More.', 'Clip ratio of 0.2 is usual.'],
    ['Learns from documents, e.g. of a language. More.', 'Learns from documents, e.g. of a language.'],
    ['从成对数据学习。然后停止。', '从成对数据学习。'],
    ['No stop', 'No stop'],
  ])('say what they do in one sentence: %s', (text, sentence) => {
    expect(firstSentence(text)).toBe(sentence)
  })
})
