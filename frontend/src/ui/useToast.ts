/** Short notices at the edge of the page. */
import { useMessage } from 'naive-ui'

import { asApiError } from '@/api/errors'
import { useErrorText } from '@/i18n/useErrorText'

export function useToast() {
  const message = useMessage()
  const errorText = useErrorText()

  function success(text: string): void {
    message.success(text, { duration: 4000, keepAliveOnHover: true })
  }

  /** Shows a failed request; anything that is not one is thrown on, so that mistakes of ours stay visible. */
  function failure(cause: unknown): void {
    message.error(errorText(asApiError(cause)), { duration: 8000, keepAliveOnHover: true, closable: true })
  }

  /** Something that went wrong in part, in words. */
  function problem(text: string): void {
    message.error(text, { duration: 8000, keepAliveOnHover: true, closable: true })
  }

  return { success, failure, problem }
}
