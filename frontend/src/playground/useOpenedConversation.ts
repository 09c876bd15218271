/** `?shared=...` in the address names a conversation that somebody shared: the page shows it once it is read. */
import { computed, nextTick, onMounted, ref, shallowRef } from 'vue'
import { useRoute } from 'vue-router'

import { type ApiError, asApiError } from '@/api/errors'
import { useAttempt } from '@/ui/useAttempt'

import { deleteShared, readShared, type SharedConversation, type Shown, shownOf } from './sharing'

/** `state` spells what the page shows: once that is changed, it is not what was shared any more. */
export function useOpenedConversation({ show, state }: { show: (shown: Shown) => void; state: () => string }) {
  const route = useRoute()
  const { isBusy, attempt } = useAttempt()
  const id = route.query.shared
  const read = shallowRef<SharedConversation | null>(null)
  const shownAs = ref('')
  /** Null: none was named, it is not read yet, or it was changed. */
  const opened = computed(() => (read.value !== null && state() === shownAs.value ? read.value : null))
  const error = shallowRef<ApiError | null>(null)

  async function open(): Promise<void> {
    if (typeof id !== 'string') return
    error.value = null
    try {
      const found = await readShared(id)
      show(shownOf(found.content))
      await nextTick() // the columns have their answers then
      shownAs.value = state()
      read.value = found
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }

  function remove(): Promise<void> {
    return attempt(async () => {
      if (read.value !== null) await deleteShared(read.value.id)
      read.value = null
    })
  }

  /** The link was deleted elsewhere on the page. */
  function forget(deleted: string): void {
    if (read.value?.id === deleted) read.value = null
  }

  onMounted(open)
  return { opened, error, isBusy, open, remove, forget }
}
