/** Sections of charts that a reader has folded: in the address once chosen, and kept for the next run of the recipe. */
import { computed } from 'vue'
import { useRoute, useRouter } from 'vue-router'

import { readText, writeChoice } from '@/composables/storedChoice'

const KEY = 'trellis.jobs.folded.'

export function useFolded(recipe: () => string) {
  const route = useRoute()
  const router = useRouter()
  const folded = computed(() => {
    const asked =
      route.query.folded === undefined ? (readText(KEY + recipe()) ?? '').split(',') : [route.query.folded].flat()
    return new Set(asked.filter((name) => typeof name === 'string' && name !== ''))
  })

  function toggleFolded(name: string): void {
    const next = new Set(folded.value)
    if (!next.delete(name)) next.add(name)
    const names = [...next]
    writeChoice(KEY + recipe(), names.join(','))
    // Empty, and not left out: a saved dashboard with everything open opens what was folded here.
    void router.replace({ query: { ...route.query, folded: names.length > 0 ? (names as string[]) : '' } })
  }

  return { folded, toggleFolded }
}
