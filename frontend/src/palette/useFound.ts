/** Things by name or id, as the server finds them; without a text the newest. */
import { computed } from 'vue'
import { useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useDebouncedQuery } from '@/api/useDebouncedQuery'
import { useRecipeNames } from '@/jobs'

import { type Entry, findRoute, findState, type FoundItem, type Group, hasWords, ICONS } from './entries'

const MOST_OF_A_KIND = 5
const MOST_RECENT = 6

/** `own` reads the palette's texts. */
export function useFound(text: () => string, own: (key: string) => string) {
  const router = useRouter()
  const { recipeTitle } = useRecipeNames()
  const query = useDebouncedQuery(
    () => ({ text: text(), limit: MOST_OF_A_KIND }),
    async (asked, signal) => ({
      of: asked.text,
      items: (await unwrap(api.GET('/api/v1/search', { params: { query: asked }, signal }))).items,
    }),
  )

  function toEntry(item: FoundItem, isMixed: boolean): Entry {
    const hasRecipe = item.kind === 'job' || item.kind === 'sweep'
    return {
      id: `${item.kind}-${item.id}`,
      label: item.name,
      icon: ICONS[item.kind],
      kind: isMixed ? own(`one.${item.kind}`) : undefined,
      detail: item.detail === null ? undefined : hasRecipe ? recipeTitle(item.detail) : item.detail,
      state: findState(item),
      run: () => void router.push(findRoute(item)),
    }
  }

  const groups = computed<Group[]>(() => {
    const answer = query.answer.value
    if (answer === null || (answer.of === '') !== (text() === '')) return []
    // What an earlier text found and this one does not name must not be opened by Enter.
    const isStale = answer.of !== text()
    const found = {
      of: answer.of,
      items: isStale ? answer.items.filter((item) => hasWords(`${item.name} ${item.id}`, text())) : answer.items,
    }
    if (found.of === '') {
      const newest = [...found.items]
        .sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
        .slice(0, MOST_RECENT)
      return newest.length === 0
        ? []
        : [{ id: 'recent', title: own('recent'), entries: newest.map((item) => toEntry(item, true)) }]
    }
    const kinds = [...new Set(found.items.map(({ kind }) => kind))]
    return kinds.map((kind) => ({
      id: kind,
      title: own(`kind.${kind}`),
      entries: found.items.filter((item) => item.kind === kind).map((item) => toEntry(item, false)),
    }))
  })

  return { groups, error: query.error, isAsking: query.isAsking, retry: query.retry }
}
