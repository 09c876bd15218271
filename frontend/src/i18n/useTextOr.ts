/** The text for a name that the server may know before the dashboard does; then the fallback stands for it. */
import { useI18n } from 'vue-i18n'

export function useTextOr() {
  const { t, te } = useI18n()

  /** `count` chooses between the singular and the plural, where a text has both. */
  return function textOr(key: string, fallback: string, values: Record<string, unknown> = {}, count?: number): string {
    if (!te(key)) return fallback
    return count === undefined ? t(key, values) : t(key, values, count)
  }
}
