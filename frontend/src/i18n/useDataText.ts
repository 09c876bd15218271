/** The sentences for what is wrong with data: translated by code, else the server's own. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { chinese } from '.'

export function useDataText() {
  const { locale } = useI18n()
  const texts = computed(() => (locale.value === 'zh' ? chinese.value : null))

  /** Of a row in quarantine, or of what is wrong between rows. */
  function rowProblemText(code: string, reason: string): string {
    return texts.value?.zhByRowProblem[code] ?? reason
  }

  /** Of a row that training cannot use. */
  function unusableText(code: string | null, problem: string): string {
    return (code === null ? undefined : texts.value?.zhByUnusableRow[code]) ?? problem
  }

  /** Of a pipeline's problem, or of a failed task; causes may be codes of the API too. */
  function dataProblemText(code: string | null, message: string): string {
    if (texts.value === null || code === null) return message
    const { zhByDataProblem, zhByCause, zhByCode } = texts.value
    return zhByDataProblem[code] ?? zhByCause[code] ?? zhByCode[code] ?? message
  }

  return { rowProblemText, unusableText, dataProblemText }
}
