/** Charts that a person has chosen and ordered, instead of the usual ones: in the address, so that a view can be saved. */
import { computed, type Ref } from 'vue'
import { useRoute, useRouter } from 'vue-router'

/** Parts of the address that a saved dashboard holds. */
export const DASHBOARD_KEYS = ['only', 'chart', 'match', 'smoothing', 'axis'] as const
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

/** `shown`: what is charted now, in order: the first change begins with that. */
export function useDashboard(reported: Ref<readonly string[]>, shown: Ref<readonly string[]>) {
  const route = useRoute()
  const router = useRouter()

  /** In the reader's order; keys that the run does not report are passed over. */
  const chosen = computed(() => [...new Set([route.query.only].flat())].filter((key) => typeof key === 'string').filter((key) => reported.value.includes(key)))
  const isOwn = computed(() => chosen.value.length > 0)

  function set(keys: readonly string[]): void {
    const only = keys.slice(0, MAX_CHARTS)
    void router.replace({ query: { ...route.query, chart: undefined, match: undefined, only: only.length > 0 ? only : undefined } })
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
