/** Language of the dashboard: the person's choice, else the browser's. */
import { createI18n } from 'vue-i18n'

import { readChoice, writeChoice } from '@/composables/storedChoice'

import { messages } from './messages'

export const LOCALES = ['en', 'zh'] as const
export type Locale = (typeof LOCALES)[number]

const KEY = 'trellis.locale'

function initialLocale(): Locale {
  const stored = readChoice(KEY, LOCALES)
  if (stored !== null) return stored
  return navigator.languages.some((tag, index) => index === 0 && tag.toLowerCase().startsWith('zh')) ? 'zh' : 'en'
}

export const i18n = createI18n({
  legacy: false,
  locale: initialLocale(),
  fallbackLocale: 'en',
  messages,
  // Both languages are complete (a test says so): a missing key is a mistake and shows as its own name.
  missingWarn: import.meta.env.DEV,
})

export function setLocale(locale: Locale): void {
  i18n.global.locale.value = locale
  writeChoice(KEY, locale)
  document.documentElement.lang = locale === 'zh' ? 'zh-CN' : 'en'
}

export function currentLocale(): Locale {
  return i18n.global.locale.value === 'zh' ? 'zh' : 'en'
}

setLocale(currentLocale())
