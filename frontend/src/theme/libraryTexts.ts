/** Words of the component library (English brings the library itself), for the language of the page. */
import type { NDateLocale, NLocale } from 'naive-ui'
import { shallowRef, watch } from 'vue'
import { useI18n } from 'vue-i18n'

interface LibraryTexts {
  locale: NLocale
  dateLocale: NDateLocale
}

/** Null in English, and until the texts of another language have come. */
export function useLibraryTexts() {
  const { locale } = useI18n()
  const texts = shallowRef<LibraryTexts | null>(null)

  watch(
    locale,
    async (wanted) => {
      const loaded = wanted === 'zh' ? await import('./libraryTextsZh') : null
      if (locale.value === wanted) texts.value = loaded
    },
    { immediate: true },
  )
  return texts
}
