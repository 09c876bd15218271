/** Which recipe suits rows, where somebody comes from a dataset and has chosen none. */
import type { DataFit, Recipe } from '../../types'

/**
 * What most people train on rows of a format, the most usual first. Conversations have no answer to check: a reward
 * would find nothing.
 */
const USUAL: Readonly<Record<string, readonly string[]>> = {
  messages: ['sft'],
  'prompt-answer': ['grpo', 'dapo', 'sft'],
  'verl-rl': ['grpo', 'dapo', 'ppo'],
  preference: ['dpo', 'reward_model', 'simpo', 'orpo'],
  'unpaired-preference': ['kto'],
  text: ['cpt'],
}

/** The usual recipes for these rows, as far as they read them. */
export function usualRecipes(format: string | null | undefined, recipes: readonly Recipe[]): Recipe[] {
  const ids = format == null ? [] : (USUAL[format] ?? [])
  return ids.flatMap(
    (id) => recipes.find((recipe) => recipe.id === id && recipe.data_formats.some((each) => each === format)) ?? [],
  )
}

/** The id of a recipe that reads these rows as they are; null where none does. */
export function recipeForFormat(format: string | null | undefined, recipes: readonly Recipe[]): string | null {
  if (format == null) return null
  const [usual] = usualRecipes(format, recipes)
  return (usual ?? recipes.find((recipe) => recipe.data_formats.some((each) => each === format)))?.id ?? null
}

/** The recipe to offer where another one cannot read the rows, or only by making something else of them. */
export function betterRecipe(
  { found, fits, conversion }: Pick<DataFit, 'found' | 'fits' | 'conversion'>,
  current: Recipe,
  recipes: readonly Recipe[],
): Recipe | null {
  const id = recipeForFormat(found, recipes)
  const usual = recipes.find((recipe) => recipe.id === id && id !== current.id)
  if (usual === undefined) return null
  // What an agent learns from is chosen by its task, not by the form of the rows.
  const isDetour = conversion !== null && usual.row_format === found && current.family !== 'agent'
  const isRead = current.data_formats.some((each) => each === found)
  return isDetour || (!fits && !isRead) ? usual : null
}

/** Where nothing was chosen: `usual`, unless it is that of none of the datasets; then what suits the newest of them. */
export function recipeForAll(formats: readonly (string | null)[], recipes: readonly Recipe[], usual: string): string {
  const suited = formats.flatMap((format) => recipeForFormat(format, recipes) ?? [])
  return suited.includes(usual) ? usual : (suited[0] ?? usual)
}
