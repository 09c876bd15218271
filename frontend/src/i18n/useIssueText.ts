/** The sentence for what speaks against a request: translated by its code, else the API's own message. */
import { useI18n } from 'vue-i18n'

import { chinese } from '.'

export function useIssueText() {
  const { locale } = useI18n()

  return function issueText(issue: { code: string; message: string }): string {
    return (locale.value === 'zh' ? chinese.value?.zhByIssue[issue.code] : undefined) ?? issue.message
  }
}
