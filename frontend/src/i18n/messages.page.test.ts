import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { i18n } from './index'
import { messages } from './messages'

interface Tree {
  [key: string]: string | Tree
}

function leaves(tree: Tree, prefix = ''): Map<string, string> {
  const found = new Map<string, string>()
  for (const [key, value] of Object.entries(tree)) {
    const path = prefix === '' ? key : `${prefix}.${key}`
    if (typeof value === 'string') found.set(path, value)
    else for (const [inner, text] of leaves(value, path)) found.set(inner, text)
  }
  return found
}

function placeholders(text: string): string[] {
  // Plural forms may leave a placeholder out, so the set counts, not the number.
  return [...new Set(text.match(/\{\w+\}/g) ?? [])].sort()
}

const en = leaves(messages.en)
const zh = leaves(messages.zh)

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(vue|ts)$/.test(name) && !/\.test\.ts$|schema\.d\.ts$|locales/.test(name))
    .map((name) => join(folder, name))
}

/** Whether a key is named in the sources; what is filled into a template there may be any word between two dots. */
function findUsed(texts: readonly string[]): (key: string) => boolean {
  const names = new Set<string>()
  const templates = new Set<string>()
  for (const text of texts) {
    for (const [, name] of text.matchAll(/['"](\w+(?:\.[\w-]+)+)['"]/g)) if (name !== undefined) names.add(name)
    for (const [, template] of text.matchAll(/`((?:[\w.-]|\$\{[^`{}]+\})+)`/g))
      if (template !== undefined) templates.add(template)
  }
  const parts = [...templates].map((template) => template.split(/\$\{[^}]+\}/))
  // A name beside a dot: what only joins what is filled in says nothing of keys.
  const patterns = parts
    .filter((literals) => literals.some((one) => /\w\.|\.\w/.test(one)))
    .map((literals) => new RegExp(`^${literals.map(escape).join('[\\w-]+')}$`))
  return (key) => names.has(key) || patterns.some((pattern) => pattern.test(key))
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

/** Numbers before a plural that are never one, and units, which stay as they are. */
const NEVER_ONE: ReadonlySet<string> = new Set([
  'datasets.trained.cutAt',
  'datasets.tasks.rate',
  'datasets.versions.details',
  'models.facts.contextValue',
  'pipelines.preview.size',
  'overview.endpoints.speed',
  'playground.load.speed',
  'playground.status.ready',
  'charts.tokens',
  'evaluations.compare.holm',
  'evaluations.compare.points',
  'evaluations.history.more',
  'evaluations.leaderboard.setting.maxTokens',
  'jobs.reading.prompts',
  'jobs.timing.lanesPart',
  'jobs.compareSeeds.fewRuns',
  'jobs.list.field.full',
  'jobs.compare.meanOf',
  'jobs.rollouts.all',
  'sweeps.bestCard.spread',
])
const COUNTED =
  /\{(?:n|count|total|all|of|value|tokens)\}\s+(?:[a-z’-]+\s+)?(?!(?:is|as|has|needs|this|vs|ms)\b)[a-z-]+s\b/

/** Calls in the sources that name a text and give values, but no number after them. */
function callsWithoutNumber(text: string): [key: string, values: string][] {
  return [...text.matchAll(/(?<![\w.])t\('([\w.-]+)', (\{[^{}]*\})\)/g)].map(([, key, values]) => [
    key ?? '',
    values ?? '',
  ])
}

describe('numbers in English', () => {
  it('have a text for one wherever they can be one', () => {
    const lacking = [...en].filter(([key, text]) => !text.includes(' | ') && COUNTED.test(text) && !NEVER_ONE.has(key))
    expect(lacking).toEqual([])
  })

  it('choose between the texts: a number that was written out does not', () => {
    const several = new Set([...en].filter(([, text]) => text.includes(' | ')).map(([key]) => key))
    const wrong = sources(join(process.cwd(), 'src')).flatMap((file) =>
      callsWithoutNumber(readFileSync(file, 'utf8'))
        .filter(([key, values]) => several.has(key) && !/\b(?:n|count)\b(?!: (?:format\.|String\())/.test(values))
        .map(([key]) => `${file}: ${key}`),
    )
    expect(wrong).toEqual([])
  })

  it('agree with what they count', () => {
    const say = (key: string, values: Record<string, unknown>, count: number) => i18n.global.t(key, values, count)

    expect([0, 1, 2].map((n) => say('environments.workflows.files', { n }, n))).toEqual([
      '0 files',
      '1 file',
      '2 files',
    ])
    expect(say('jobs.launch.rows', { count: '1' }, 1)).toBe('1 row')
    expect(say('jobs.launch.rows', { count: '1,200' }, 1200)).toBe('1,200 rows')
  })
})

describe('the texts of the dashboard', () => {
  it('have the same keys in both languages', () => {
    expect([...zh.keys()].sort()).toEqual([...en.keys()].sort())
  })

  it('have the same placeholders in both languages', () => {
    const different = [...en.keys()].filter((key) => {
      return JSON.stringify(placeholders(en.get(key) ?? '')) !== JSON.stringify(placeholders(zh.get(key) ?? ''))
    })
    expect(different).toEqual([])
  })

  it('can all be read: no sign in them means something else to the library', () => {
    const unreadable = (['en', 'zh'] as const).flatMap((locale) =>
      [...en.keys()].filter((key) => {
        try {
          i18n.global.t(key, {}, { locale })
          return false
        } catch (cause) {
          if (cause instanceof SyntaxError) return true
          throw cause
        }
      }),
    )

    expect(unreadable).toEqual([])
  })

  it('are nowhere empty', () => {
    expect([...en, ...zh].filter(([, text]) => text.trim() === '')).toEqual([])
  })

  it('hold every key that a component asks for by name', () => {
    const missing: string[] = []
    for (const file of sources(join(process.cwd(), 'src'))) {
      for (const [, key] of readFileSync(file, 'utf8').matchAll(/(?<![\w.])\$?t[ce]?\(\s*'([\w.-]+)'/g)) {
        if (key !== undefined && !en.has(key)) missing.push(`${file}: ${key}`)
      }
    }
    expect(missing).toEqual([])
  })

  it('are all used somewhere', () => {
    const isUsed = findUsed(sources(join(process.cwd(), 'src')).map((file) => readFileSync(file, 'utf8')))

    expect([...en.keys()].filter((key) => !isUsed(key))).toEqual([])
  })
})
