/** Recipes by family, as far as a search lets them through. */
import type { Recipe } from '../../types'

export type Family = Recipe['family']

export const FAMILIES = ['supervised', 'rl', 'preference', 'agent'] as const satisfies readonly Family[]

export interface RecipeGroup {
  family: Family
  recipes: Recipe[]
}

/** Every word of the search must be found: in the id, the names, the descriptions or the paper. */
export function matchesRecipe(recipe: Recipe, needle: string): boolean {
  const words = needle
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const { title, description, paper } = recipe
  const text = [recipe.id, title.en, title.zh, description.en, description.zh, paper?.title ?? '', paper?.arxiv ?? '']
    .join('\n')
    .toLowerCase()
  return words.every((word) => text.includes(word))
}

/** Families without a match are left out; within a family the settled recipes stand before the experimental ones. */
export function groupRecipes(recipes: readonly Recipe[], needle: string): RecipeGroup[] {
  return FAMILIES.map((family) => ({
    family,
    recipes: recipes
      .filter((recipe) => recipe.family === family && matchesRecipe(recipe, needle))
      .sort((a, b) => Number(a.is_experimental) - Number(b.is_experimental)),
  })).filter((group) => group.recipes.length > 0)
}

/** The first sentence, for places that have room for one. */
export function firstSentence(text: string): string {
  return /^.*?(?:(?<!\b(?:e\.g|i\.e|vs))[.!?](?=\s|$)|[。！？])/s.exec(text)?.[0] ?? text
}

export function paperUrl(recipe: Recipe): string | null {
  const id = recipe.paper?.arxiv
  return id == null ? null : `https://arxiv.org/abs/${id}`
}
