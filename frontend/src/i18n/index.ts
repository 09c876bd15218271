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

/** Files of texts that are there, or on their way; one that failed is asked for again. */
const asked = new Map<string, Promise<void>>()
/** The language chosen last; its texts may still be on their way. */
let chosen: Locale = 'en'
/** A job's page, which is to show its first curve soon, does without the texts of most other domains. */
let isAllWanted = false

function once(name: string, load: () => Promise<void>): Promise<void> {
  const loading =
    asked.get(name) ??
    load().catch((cause: unknown) => {
      asked.delete(name)
      throw cause
    })
  asked.set(name, loading)
  return loading
}

async function loadFirst(locale: Locale): Promise<void> {
  const { messages } = locale === 'zh' ? (chinese.value = await import('./texts/zh')) : await import('./texts/en')
  i18n.global.mergeLocaleMessage(locale, messages)
}

async function loadRest(locale: Locale): Promise<void> {
  const { messages } = locale === 'zh' ? await import('./texts/zhRest') : await import('./texts/enRest')
  i18n.global.mergeLocaleMessage(locale, messages)
}

/** Brings the texts of a language, once; throws where they cannot be loaded. */
async function loadTexts(locale: Locale): Promise<void> {
  const rest = isAllWanted ? once(`${locale}Rest`, () => loadRest(locale)) : Promise.resolve()
  await Promise.all([once(locale, () => loadFirst(locale)), rest])
}

/** Brings the texts of all domains in the chosen language, from now on with every language; throws where they cannot be loaded. */
export function loadAllTexts(locale: Locale = chosen): Promise<void> {
  isAllWanted = true
  return loadTexts(locale)
}

/** A loader of code that shows texts of any domain, for pages that begin without them. */
export function withAllTexts<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => (await Promise.all([load(), loadAllTexts()]))[0]
}

/** Shows the page in a language, as soon as its texts are there; throws where they cannot be loaded. */
export async function setLocale(locale: Locale): Promise<void> {
  chosen = locale
  writeChoice(KEY, locale) // at once: who goes to another page meanwhile has chosen, too
  await loadTexts(locale)
  if (chosen !== locale) return // another one since
  i18n.global.locale.value = locale
  document.documentElement.lang = locale === 'zh' ? 'zh-CN' : 'en'
}

export function currentLocale(): Locale {
  return i18n.global.locale.value === 'zh' ? 'zh' : 'en'
}
