/** The sentences for what is wrong with data: translated by code, else the server's own. */
import { useI18n } from 'vue-i18n'

import { zhByCause, zhByCode } from './apiErrors'
import { zhByDataProblem, zhByRowProblem, zhByUnusableRow } from './dataTexts'

export function useDataText() {
  const { locale } = useI18n()

  /** Of a row in quarantine, or of what is wrong between rows. */
  function rowProblemText(code: string, reason: string): string {
    return (locale.value === 'zh' ? zhByRowProblem[code] : undefined) ?? reason
  }

  /** Of a row that training cannot use. */
  function unusableText(code: string | null, problem: string): string {
    return (locale.value === 'zh' && code !== null ? zhByUnusableRow[code] : undefined) ?? problem
  }

  /** Of a pipeline's problem, or of a failed task; causes may be codes of the API too. */
  function dataProblemText(code: string | null, message: string): string {
    if (locale.value !== 'zh' || code === null) return message
    return zhByDataProblem[code] ?? zhByCause[code] ?? zhByCode[code] ?? message
  }

  return { rowProblemText, unusableText, dataProblemText }
}
