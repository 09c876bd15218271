import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import { describe, expect, it } from 'vitest'

import { messages } from './texts/en'
import { messages as rest } from './texts/enRest'

const SOURCES = resolve('src')
/** What a job's page begins with. */
const ENTRIES = ['main.ts', 'auth/LoginPage.vue', 'layout/DashboardFrame.vue', 'jobs/page/JobPage.vue'].map((name) =>
  join(SOURCES, name),
)
/** Names texts of all domains; a page asks for those of its own. */
const EXCEPT = /routes\.ts$|\/ui\/state\.ts$|\/i18n\/texts\//
const STATIC = /^(?:import|export)\s(?!type\s)([^'"=]*?)['"]((?:@\/|\.)[^'"]+)['"]/gm
/** What a domain offers to others, as its `index.ts` says it. */
const OFFERED = /^export \{([^}]*)\} from '(\.[^']+)'/gm
const DOMAIN = /^@\/(?!i18n$)[^/]+$/
const LAZY = /(withAllTexts\(\s*\(\) => )?import\(\s*['"]((?:@\/|\.)[^'"]+)['"]/g
const FOREIGN = new RegExp(`['"\`](?:${Object.keys(rest).join('|')})\\.[\\w$]+`, 'g')

function find(from: string, name: string): string {
  const base = name.startsWith('@/') ? join(SOURCES, name.slice(2)) : join(dirname(from), name)
  const found = [base, `${base}.ts`, `${base}.vue`, join(base, 'index.ts')].find(
    (path) => existsSync(path) && statSync(path).isFile(),
  )
  if (found === undefined) throw new Error(`${from} imports ${name}, which was not found`)
  return found
}

function namesIn(list: string): string[] {
  return list.split(/[{},\s]+/).filter((word) => /^\w+$/.test(word) && word !== 'import' && word !== 'from')
}

/** The files behind an import: of a domain's `index.ts` only what is asked for, as in the build (vite.config.ts). */
function filesOf(from: string, asked: string, name: string): string[] {
  const file = find(from, name)
  if (!DOMAIN.test(name)) return [file]
  const wanted = namesIn(asked)
  const offered = [...readFileSync(file, 'utf8').matchAll(OFFERED)].map(([, list = '', source = '']) => ({
    names: namesIn(list.replace(/default as /g, '')),
    source,
  }))
  const hits = offered.filter(({ names }) => names.some((one) => wanted.includes(one)))
  const isOwn = wanted.some((one) => one !== 'type' && !hits.some(({ names }) => names.includes(one)))
  return [...(isOwn ? [file] : []), ...hits.map(({ source }) => find(file, source))]
}

/** Files that come with some files, and those that they load later, without `withAllTexts`. */
function follow(entries: readonly string[]): Set<string> {
  const seen = new Set<string>()
  const todo = [...entries]
  for (let file = todo.pop(); file !== undefined; file = todo.pop()) {
    if (seen.has(file) || EXCEPT.test(file) || !/\.(ts|vue)$/.test(file)) continue
    seen.add(file)
    const code = readFileSync(file, 'utf8')
    for (const [, asked = '', name = ''] of code.matchAll(STATIC)) todo.push(...filesOf(file, asked, name))
    // Pages ask for their texts by their routes.
    for (const [, wrapper, name = ''] of code.matchAll(LAZY))
      if (wrapper === undefined && !file.endsWith('/router.ts')) todo.push(find(file, name))
  }
  return seen
}

describe('the texts that a job’s page begins with', () => {
  const files = follow(ENTRIES)

  it('are all that it names', () => {
    const missing = [...files].flatMap((file) =>
      (readFileSync(file, 'utf8').match(FOREIGN) ?? []).map((key) => `${file.slice(SOURCES.length + 1)}: ${key}`),
    )

    expect(missing).toEqual([])
  })

  it('were looked for in the whole page', () => {
    expect([...files].map((file) => file.slice(SOURCES.length + 1))).toEqual(
      expect.arrayContaining(['jobs/page/rollouts/RolloutsTab.vue', 'charts/MetricChart.vue', 'layout/SideNav.vue']),
    )
    expect([...files].some((file) => file.endsWith('CheckpointRow.vue'))).toBe(false) // loaded with all texts
  })

  it('call a page as the page calls itself', () => {
    const pages = {
      ...rest,
      dataPipelines: rest.pipelines,
      workflows: rest.jobPipelines,
      agentCode: rest.environments.workflows,
    }
    const titles = Object.entries(messages.layout.place).filter(([name]) => name in pages)

    expect(titles.map(([name]) => [name, pages[name as keyof typeof pages].title])).toEqual(titles)
    expect(titles.length).toBeGreaterThan(8)
  })

  it('have no domain twice', () => {
    expect(Object.keys(messages).filter((domain) => domain in rest)).toEqual([])
  })
})
