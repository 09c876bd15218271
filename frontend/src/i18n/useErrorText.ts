/** The sentence for an error: translated by its code, else the API's own message. */
import { useI18n } from 'vue-i18n'

import type { ApiError } from '@/api/errors'
import { isRecord } from '@/api/json'

import { chinese } from '.'
import type * as Chinese from './texts/zh'

/** The more exact code: of the details, or of the first of several. */
function causeOf({ details }: ApiError): unknown {
  const first: unknown = Array.isArray(details.items) ? details.items[0] : null
  return details.code ?? (isRecord(first) ? first.code : undefined)
}

function sayInChinese(error: ApiError, { fillIn, zhByCause, zhByCode, zhByDataProblem }: typeof Chinese): string {
  const cause = causeOf(error)
  const exact = typeof cause === 'string' ? (zhByCause[cause] ?? zhByDataProblem[cause]) : undefined
  const text = exact ?? zhByCode[error.code]
  return (text === undefined ? null : fillIn(text, error.details)) ?? error.message
}

export function useErrorText() {
  const { t, te, locale } = useI18n()

  return function errorText(error: ApiError): string {
    // Failures that the dashboard itself noticed.
    if (te(`error.${error.code}`)) return t(`error.${error.code}`)
    return locale.value === 'zh' && chinese.value !== null ? sayInChinese(error, chinese.value) : error.message
  }
}
