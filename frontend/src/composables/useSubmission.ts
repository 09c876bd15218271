/** One request of a form: whether it is under way, and what went wrong with the last one. */
import { ref, shallowRef } from 'vue'

import { type ApiError, asApiError } from '@/api/errors'

export function useSubmission() {
  const error = shallowRef<ApiError | null>(null)
  const isBusy = ref(false)

  /** Runs it unless one runs already; what it throws is kept for the form to show. */
  async function submit(action: () => Promise<void>): Promise<void> {
    if (isBusy.value) return
    isBusy.value = true
    error.value = null
    try {
      await action()
    } catch (cause) {
      error.value = asApiError(cause)
    } finally {
      isBusy.value = false
    }
  }

  return { error, isBusy, submit }
}
