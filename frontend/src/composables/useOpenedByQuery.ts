/** A dialog that an address opens, for instance from another page's button; the mark leaves the address at once. */
import { onMounted, watch } from 'vue'
import { useRoute, useRouter } from 'vue-router'

export function useOpenedByQuery(name: string, open: () => void): void {
  const route = useRoute()
  const router = useRouter()
  const page = route.name

  function look(): void {
    // The next page may have a mark of the same name.
    if (route.query[name] === undefined || route.name !== page) return
    open()
    // A reload or a link to the list should not open the dialog again.
    void router.replace({ query: { ...route.query, [name]: undefined } })
  }

  onMounted(look)
  // Somebody on the page may follow such an address, too.
  watch(() => route.query[name], look)
}
