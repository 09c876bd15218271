/** Something a person asked for that may fail: busy while it runs, and the failure is told at the edge of the page. */
import { ref } from 'vue'

import { useToast } from './useToast'

export function useAttempt() {
  const toast = useToast()
  const isBusy = ref(false)

  async function attempt(action: () => Promise<void>): Promise<void> {
    isBusy.value = true
    try {
      await action()
    } catch (cause) {
      toast.failure(cause)
    } finally {
      isBusy.value = false
    }
  }

  return { isBusy, attempt }
}
