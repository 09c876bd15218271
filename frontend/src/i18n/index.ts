/** Language of the dashboard: the person's choice, else the browser's. Only the texts that are shown are loaded. */
import { shallowRef } from 'vue'
import { createI18n } from 'vue-i18n'

import { readChoice, writeChoice } from '@/composables/storedChoice'

import type * as Chinese from './texts/zh'

export const LOCALES = ['en', 'zh'] as const
export type Locale = (typeof LOCALES)[number]

const KEY = 'trellis.locale'

/** Sentences of the API in Chinese; null as long as the page has only been shown in English. */
export const chinese = shallowRef<typeof Chinese | null>(null)

export const i18n = createI18n({
  legacy: false,
  // Until the page starts (main.ts): reading the choice takes a browser.
  locale: 'en',
  // Both languages are complete (a test says so): a missing key is a mistake and shows as its own name.
  missingWarn: import.meta.env.DEV,
})

export function initialLocale(): Locale {
  const stored = readChoice(KEY, LOCALES)
  if (stored !== null) return stored
  return navigator.languages.some((tag, index) => index === 0 && tag.toLowerCase().startsWith('zh')) ? 'zh' : 'en'
}

const loaded = new Set<Locale>()

/** Brings the texts of a language, once; throws where they cannot be loaded. */
export async function loadTexts(locale: Locale): Promise<void> {
  if (loaded.has(locale)) return
  if (locale === 'zh') {
    chinese.value = await import('./texts/zh')
    i18n.global.setLocaleMessage(locale, chinese.value.messages)
  } else {
    i18n.global.setLocaleMessage(locale, (await import('./texts/en')).messages)
  }
  loaded.add(locale)
}

/** Shows the page in a language, as soon as its texts are there; throws where they cannot be loaded. */
export async function setLocale(locale: Locale): Promise<void> {
  writeChoice(KEY, locale) // at once: who goes to another page meanwhile has chosen, too
  await loadTexts(locale)
  i18n.global.locale.value = locale
  document.documentElement.lang = locale === 'zh' ? 'zh-CN' : 'en'
}

export function currentLocale(): Locale {
  return i18n.global.locale.value === 'zh' ? 'zh' : 'en'
}
