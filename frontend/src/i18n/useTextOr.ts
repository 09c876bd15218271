/** The text for a name that the server may know before the dashboard does; then the fallback stands for it. */
import { useI18n } from 'vue-i18n'

export function useTextOr() {
  const { t, te } = useI18n()

  return function textOr(key: string, fallback: string, values: Record<string, unknown> = {}): string {
    return te(key) ? t(key, values) : fallback
  }
}
