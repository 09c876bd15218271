/** Which recipe suits rows, where somebody comes from a dataset and has chosen none. */
import type { Recipe } from '../../types'

/** What most people train on rows of a format. Conversations have no answer to check: a reward would find nothing. */
const USUAL: Readonly<Record<string, string>> = {
  messages: 'sft',
  'prompt-answer': 'grpo',
  'verl-rl': 'grpo',
  preference: 'dpo',
  'unpaired-preference': 'kto',
  text: 'cpt',
}

/** The id of a recipe that reads these rows as they are; null where none does. */
export function recipeForFormat(format: string | null | undefined, recipes: readonly Recipe[]): string | null {
  if (format == null) return null
  const fits = recipes.filter((recipe) => recipe.data_formats.some((each) => each === format))
  return fits.find((recipe) => recipe.id === USUAL[format])?.id ?? fits[0]?.id ?? null
}

/** Where nothing was chosen: `usual`, unless it is that of none of the datasets; then what suits the newest of them. */
export function recipeForAll(formats: readonly (string | null)[], recipes: readonly Recipe[], usual: string): string {
  const suited = formats.flatMap((format) => recipeForFormat(format, recipes) ?? [])
  return suited.includes(usual) ? usual : (suited[0] ?? usual)
}
