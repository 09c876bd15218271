import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createI18n } from 'vue-i18n'
import { describe, expect, it } from 'vitest'

import { messages } from '@/i18n/messages'

import { unitText } from './units'

const RECIPES = join(process.cwd(), '..', 'recipes', 'trellis_recipes')

/** The units of every parameter, of every option of a reward, and of every parameter of an environment. */
function unitsUsed(): string[] {
  const texts = readdirSync(RECIPES, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => readFileSync(join(RECIPES, name), 'utf8'))
  return [
    ...new Set(
      texts.flatMap((text) =>
        [...text.matchAll(/\bunit: *["']?([^"',}\n#]+)/g)].map(([, unit]) => (unit ?? '').trim()),
      ),
    ),
  ]
}

describe('units', () => {
  it.each(['en', 'zh'] as const)('of recipes and rewards have a text (%s)', (locale) => {
    const { te } = createI18n({ legacy: false, locale, messages }).global
    const units = unitsUsed()

    expect(units).toEqual(expect.arrayContaining(['steps', 'words', 'US dollars']))
    expect(units.filter((unit) => !te(unitText(unit), locale))).toEqual([])
  })
})
