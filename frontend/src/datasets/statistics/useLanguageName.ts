/** Languages by name, in the language of the page. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

export function useLanguageName() {
  const { t, locale } = useI18n()
  const names = computed(
    () => new Intl.DisplayNames([locale.value === 'zh' ? 'zh-CN' : 'en'], { type: 'language', fallback: 'code' }),
  )

  return function languageName(code: string): string {
    // Codes that are no language: unknown, none.
    return /^[a-z]{2,3}(-\w+)?$/i.test(code) && code !== 'und'
      ? (names.value.of(code) ?? code)
      : t('datasets.statistics.noLanguage')
  }
}
