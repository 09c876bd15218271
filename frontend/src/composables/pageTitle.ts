/** The window's title: the page's name from its route, or the name of the thing that it shows. */
import { onScopeDispose, shallowRef, toValue, watchEffect } from 'vue'
import type { MaybeRefOrGetter } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRoute } from 'vue-router'

/** In a box, so that a ref given as a title stays a ref. */
const own = shallowRef<{ title: MaybeRefOrGetter<string | null> } | null>(null)

/** Names the page after what it shows, for as long as the calling component lives. */
export function usePageTitle(title: MaybeRefOrGetter<string | null>): void {
  const mine = { title }
  own.value = mine
  onScopeDispose(() => {
    // The next page may have set its own already.
    if (own.value === mine) own.value = null
  })
}

/** Called once, by the root. */
export function keepWindowTitle(): void {
  const { t } = useI18n()
  const route = useRoute()
  watchEffect(() => {
    const name = toValue(own.value?.title ?? null) ?? (route.meta.title === undefined ? null : t(route.meta.title))
    document.title = name === null ? t('app.name') : `${name} · ${t('app.name')}`
  })
}
