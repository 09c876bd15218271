/** A text that lives in the address, so that a filtered list can be linked and reloaded. */
import { computed } from 'vue'
import type { WritableComputedRef } from 'vue'
import { useRoute, useRouter } from 'vue-router'

export function useQueryText(name: string): WritableComputedRef<string> {
  const route = useRoute()
  const router = useRouter()
  return computed({
    get: () => {
      const value = route.query[name]
      return typeof value === 'string' ? value : ''
    },
    set: (text) => {
      void router.replace({ query: { ...route.query, [name]: text === '' ? undefined : text } })
    },
  })
}
