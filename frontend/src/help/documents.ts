/** The documentation in `docs`, as part of the build: each document is loaded when it is read. */
const FILES = import.meta.glob<string>(['../../../docs/*.md', '!../../../docs/architecture.md'], {
  query: '?raw',
  import: 'default',
})
const PLACE = '../../../docs/'

/** In the order of the list; what is not named here is listed behind. */
const TITLES: Readonly<Record<string, string>> = {
  data: 'Data',
  recipes: 'Recipes',
  rewards: 'Rewards',
  agents: 'Agents',
  sweeps: 'Sweeps',
  evaluation: 'Evaluation',
  serving: 'Serving',
  'taking-it-elsewhere': 'Exporting and registering models',
  sdk: 'Python SDK',
  api: 'API overview',
  'fine-tuning-api': 'OpenAI fine-tuning API',
  operations: 'Operations',
  performance: 'Performance',
  configuration: 'Settings',
  gpu: 'GPU machines',
  upgrading: 'Upgrading the engines',
}

export interface Document {
  name: string
  title: string
}

const NAMES = Object.keys(FILES).map((path) => path.slice(PLACE.length, -'.md'.length))

export const DOCUMENTS: readonly Document[] = [
  ...Object.keys(TITLES).filter((name) => NAMES.includes(name)),
  ...NAMES.filter((name) => !(name in TITLES)),
].map((name) => ({ name, title: TITLES[name] ?? name }))

/** The text of a document; null where there is none of this name. */
export async function loadDocument(name: string): Promise<string | null> {
  const load = NAMES.includes(name) ? FILES[`${PLACE}${name}.md`] : undefined
  return load === undefined ? null : await load()
}

/** Title and body; links between documents lead to their pages here, those to other files become plain words. */
export function readDocument(text: string, self: string): { title: string; body: string } {
  const title = /^# (.+)$/m.exec(text)?.[1] ?? ''
  // Every second part is code, which stays as it is.
  const parts = text.replace(/^# .+\n/m, '').split(/(^```[\s\S]*?^```)/m)
  return { title, body: parts.map((part, at) => (at % 2 === 1 ? part : fitIn(part, self))).join('') }
}

/** Headings follow that of the page. */
function fitIn(text: string, self: string): string {
  return text
    .replace(/^#(?=#+ )/gm, '')
    .replace(/\[([^\]\n]+)\]\(([^()\s]+)\)/g, (whole, words: string, to: string) => {
      if (/^https?:\/\//.test(to)) return whole
      const [, name, hash = ''] = /^([\w-]*?)(?:\.md)?(#[\w-]+)?$/.exec(to) ?? []
      if (name === '' && hash !== '') return `[${words}](/help/${self}${hash})`
      return name !== undefined && NAMES.includes(name) ? `[${words}](/help/${name}${hash})` : words
    })
}

/** The anchor of a heading, as GitHub makes it. */
export function toAnchor(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}
