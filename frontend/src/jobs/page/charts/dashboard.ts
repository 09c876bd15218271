/** Charts that a person has chosen and ordered, instead of the usual ones: in the address, so that a view can be saved. */
import { computed, type Ref } from 'vue'
import { useRoute, useRouter } from 'vue-router'

/** Parts of the address that say how curves are drawn, and not which. */
export const DRAWN_KEYS = ['smoothing', 'axis', 'scale', 'folded'] as const
/** Parts of the address that a saved dashboard holds. */
export const DASHBOARD_KEYS = ['only', 'chart', 'match', ...DRAWN_KEYS] as const
/** An address with more would not pass through every proxy. */
export const MAX_CHARTS = 60

/** The keys with one of them moved by some places; at an end nothing changes. */
export function moveKey(keys: readonly string[], key: string, by: number): string[] {
  const from = keys.indexOf(key)
  const to = from + by
  if (from < 0 || to < 0 || to >= keys.length) return [...keys]
  const rest = keys.filter((one) => one !== key)
  return [...rest.slice(0, to), key, ...rest.slice(to)]
}

/** `shown`: what is charted now, in the order of the page: the first change begins with that. */
export function useDashboard(reported: Ref<readonly string[]>, shown: Ref<readonly string[]>) {
  const route = useRoute()
  const router = useRouter()

  /** All of the dashboard's keys in the reader's order, also those that the run has not reported yet. */
  const wanted = computed(() => [...new Set([route.query.only].flat())].filter((key) => typeof key === 'string'))
  const chosen = computed(() => wanted.value.filter((key) => reported.value.includes(key)))
  const isOwn = computed(() => wanted.value.length > 0)

  function set(keys: readonly string[]): void {
    // Charts that wait for their first value keep their place behind the one that they follow.
    const only = (isOwn.value ? keepUnreported(keys) : [...keys]).slice(0, MAX_CHARTS)
    void router.replace({
      query: { ...route.query, chart: undefined, match: undefined, only: only.length > 0 ? only : undefined },
    })
  }

  function keepUnreported(keys: readonly string[]): string[] {
    const kept = [...keys]
    wanted.value.forEach((key, index) => {
      if (reported.value.includes(key)) return
      const before = wanted.value.slice(0, index).findLast((one) => kept.includes(one))
      kept.splice(before === undefined ? 0 : kept.indexOf(before) + 1, 0, key)
    })
    return kept
  }

  function move(key: string, by: number): void {
    set(moveKey(shown.value, key, by))
  }

  function remove(key: string): void {
    set(shown.value.filter((one) => one !== key))
  }

  function add(keys: readonly string[]): void {
    set([...new Set([...shown.value, ...keys])])
  }

  return { chosen, isOwn, move, remove, add }
}
