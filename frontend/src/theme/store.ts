/** Dark, light or as the system has it; the choice is remembered by the browser. */
import { defineStore } from 'pinia'
import { computed, ref, watchEffect } from 'vue'

import { readChoice, writeChoice } from '@/composables/storedChoice'
import { dark, light, type Palette } from './palettes'

export const THEMES = ['system', 'light', 'dark'] as const
export type ThemeChoice = (typeof THEMES)[number]

const KEY = 'trellis.theme'

function toCssName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function paint(palette: Palette, isDark: boolean): void {
  const root = document.documentElement
  root.dataset.theme = isDark ? 'dark' : 'light'
  root.style.colorScheme = isDark ? 'dark' : 'light'
  for (const [name, value] of Object.entries(palette)) {
    if (typeof value === 'string') root.style.setProperty(toCssName(name), value)
  }
}

export const useThemeStore = defineStore('theme', () => {
  const choice = ref<ThemeChoice>(readChoice(KEY, THEMES) ?? 'system')
  const query = window.matchMedia('(prefers-color-scheme: dark)')
  const systemIsDark = ref(query.matches)
  query.addEventListener('change', (event) => (systemIsDark.value = event.matches))

  const isDark = computed(() => (choice.value === 'system' ? systemIsDark.value : choice.value === 'dark'))
  const palette = computed<Palette>(() => (isDark.value ? dark : light))

  watchEffect(() => {
    paint(palette.value, isDark.value)
  })

  function choose(next: ThemeChoice): void {
    choice.value = next
    writeChoice(KEY, next)
  }

  function toggle(): void {
    choose(isDark.value ? 'light' : 'dark')
  }

  return { choice, isDark, palette, choose, toggle }
})
