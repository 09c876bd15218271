/** Codes of reasons, counts, findings and phases in words; behind a colon a code carries a name. */
import { useTextOr } from '@/i18n/useTextOr'

export function useCodeText() {
  const textOr = useTextOr()

  return function codeText(kind: 'reason' | 'count' | 'finding' | 'phase', code: string): string {
    const at = code.indexOf(':')
    const head = at < 0 ? code : code.slice(0, at)
    const text = textOr(`pipelines.${kind}.${head}`, head)
    return at < 0 ? text : `${text}: ${code.slice(at + 1)}`
  }
}
