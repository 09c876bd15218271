/** Titles and engines of the recipes, read once: they change only with the platform's version. */
import { computed, shallowRef } from 'vue'

import { api, unwrap } from '@/api/client'
import { asApiError } from '@/api/errors'
import type { components } from '@/api/schema'
import { currentLocale } from '@/i18n'

type RecipeName = components['schemas']['RecipeName']

const names = shallowRef<readonly RecipeName[]>([])
let asked: Promise<void> | null = null

async function load(): Promise<void> {
  try {
    names.value = (await unwrap(api.GET('/api/v1/recipes/names'))).items
  } catch (cause) {
    // Ids stand for the titles; the next page asks again.
    asApiError(cause)
    asked = null
  }
}

export function useRecipeNames() {
  asked ??= load()

  /** The recipe's name in the reader's language; its id while the names are not here. */
  function recipeTitle(id: string): string {
    return names.value.find((one) => one.id === id)?.title[currentLocale()] ?? id
  }

  return { recipes: computed(() => names.value), recipeTitle }
}
