/** A dialog that an address opens, for instance from another page's button; the mark leaves the address at once. */
import { onMounted } from 'vue'
import { useRoute, useRouter } from 'vue-router'

export function useOpenedByQuery(name: string, open: () => void): void {
  const route = useRoute()
  const router = useRouter()
  onMounted(() => {
    if (route.query[name] === undefined) return
    // A reload or a link to the list should not open the dialog again.
    void router.replace({ query: { ...route.query, [name]: undefined } })
    open()
  })
}
