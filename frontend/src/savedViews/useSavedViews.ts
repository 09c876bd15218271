/** The saved views of a page, and what can be done with them. */
import { computed, ref, watch } from 'vue'
import { type LocationQuery, useRoute, useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import type { components } from '@/api/schema'
import { useResource } from '@/api/useResource'
import { readText, writeChoice } from '@/composables/storedChoice'
import { useToast } from '@/ui/useToast'

import { applyQuery, pickQuery } from './query'

export type SavedView = components['schemas']['SavedViewRead']

export interface ViewsOf {
  page: components['schemas']['SavedViewPage']
  /** Of charts, the recipe. */
  scope: string
  /** Parts of the address that a view holds. */
  keys: readonly string[]
  /** Show the view that was chosen last when the page opens without one. */
  isRemembered: boolean
  /** Of the keys, those that alone make no view: how things are drawn, which a browser remembers anyway. */
  minor: readonly string[]
  /** What the page shows from the browser's memory where the address says nothing. */
  kept: () => LocationQuery
  /** Keys of the address that go when another view is shown. */
  dropped: readonly string[]
}

export function useSavedViews(of: ViewsOf) {
  const route = useRoute()
  const router = useRouter()
  const toast = useToast()
  const isBusy = ref(false)
  const storedKey = `trellis.views.${of.page}.${of.scope}`

  const listed = useResource((signal) =>
    unwrap(api.GET('/api/v1/saved-views', { params: { query: { page: of.page, scope: of.scope } }, signal })),
  )
  const views = computed(() => listed.data.value?.items ?? [])
  const major = of.keys.filter((key) => !of.minor.includes(key))
  /** Empty where the page shows what it shows by itself. */
  const shown = computed<LocationQuery>(() => ({ ...of.kept(), ...route.query }))
  const current = computed(() => (pickQuery(shown.value, major) === '' ? '' : pickQuery(shown.value, of.keys)))
  const chosen = computed(() => views.value.find((view) => isSame(view)) ?? null)

  function isSame(view: SavedView): boolean {
    return pickQuery(applyQuery({}, major, view.query) as LocationQuery, major) === pickQuery(shown.value, major)
  }

  function show(view: SavedView | null): void {
    if (of.isRemembered) writeChoice(storedKey, view?.id ?? '')
    const keys = view === null ? major : of.keys
    void router.replace({ query: applyQuery(route.query, [...keys, ...of.dropped], view?.query ?? '') })
  }

  watch(views, (found, before) => {
    if (!of.isRemembered || before.length > 0 || current.value !== '') return
    const last = found.find((view) => view.id === readText(storedKey))
    if (last !== undefined) show(last)
  })

  /** Whether it worked; the reason is shown where it did not. */
  async function run(change: () => Promise<unknown>): Promise<boolean> {
    isBusy.value = true
    try {
      await change()
      await listed.refresh()
      return true
    } catch (cause) {
      toast.failure(cause)
      return false
    } finally {
      isBusy.value = false
    }
  }

  function save(name: string): Promise<boolean> {
    return run(async () => {
      const view = await unwrap(
        api.POST('/api/v1/saved-views', { body: { page: of.page, scope: of.scope, name, query: current.value } }),
      )
      if (of.isRemembered) writeChoice(storedKey, view.id)
    })
  }

  function replace(view: SavedView): Promise<boolean> {
    return run(() =>
      unwrap(
        api.PATCH('/api/v1/saved-views/{view_id}', {
          params: { path: { view_id: view.id } },
          body: { query: current.value },
        }),
      ),
    )
  }

  function remove(view: SavedView): Promise<boolean> {
    return run(() => unwrap(api.DELETE('/api/v1/saved-views/{view_id}', { params: { path: { view_id: view.id } } })))
  }

  return { listed, views, chosen, current, isBusy, show, save, replace, remove }
}
