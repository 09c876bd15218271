import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createI18n } from 'vue-i18n'
import { describe, expect, it } from 'vitest'

import { messages } from '@/i18n/messages'

import { unitText } from './units'

const ROOT = join(process.cwd(), '..')

/** What a pattern finds in the files of a folder, each once. */
function find(folder: string, ending: string, pattern: RegExp): string[] {
  const texts = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(join(ROOT, folder, name), 'utf8'))
  return [...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, unit]) => (unit ?? '').trim())))]
}

/** The units of every parameter of recipes, rewards, environments and operators. */
function unitsUsed(): string[] {
  return [
    ...find('recipes/trellis_recipes', '.yaml', /\bunit: *["']?([^"',}\n#]+)/g),
    ...find('factory/trellis_data', '.py', /^ +unit="(\w+)",$/gm),
  ]
}

describe('units', () => {
  it.each(['en', 'zh'] as const)('of parameters have a text (%s)', (locale) => {
    const { te } = createI18n({ legacy: false, locale, messages }).global
    const units = unitsUsed()

    expect(units).toEqual(expect.arrayContaining(['steps', 'words', 'bits', 'US dollars']))
    expect(units.filter((unit) => !te(unitText(unit), locale))).toEqual([])
  })
})
