/** The catalogue of recipes, read once: it changes only with the platform's version. */
import { computed, shallowRef } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { Recipe } from '../types'

const recipes = shallowRef<Recipe[]>([])
const error = shallowRef<ApiError | null>(null)
const isLoading = shallowRef(false)

async function load(): Promise<void> {
  if (isLoading.value) return
  isLoading.value = true
  try {
    recipes.value = (await unwrap(api.GET('/api/v1/recipes'))).items
    error.value = null
  } catch (cause) {
    error.value = asApiError(cause)
  } finally {
    isLoading.value = false
  }
}

export function useRecipes() {
  if (recipes.value.length === 0) void load()

  return {
    recipes: computed(() => recipes.value),
    error: computed(() => error.value),
    isLoading: computed(() => isLoading.value),
    reload: load,
  }
}
