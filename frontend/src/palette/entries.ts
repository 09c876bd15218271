/** What the command palette lists, and what of it fits the text. */
import type { RouteLocationRaw } from 'vue-router'

import type { components } from '@/api/schema'
import type { IconName } from '@/ui/icons'
import { MARKS, type State, type WORDS } from '@/ui/state'

export type FoundItem = components['schemas']['FoundItem']
export type FoundKind = FoundItem['kind']

export interface Entry {
  id: string
  label: string
  /** More words by which it is found. */
  words?: string
  icon?: IconName
  /** What it is, where the heading above does not say so. */
  kind?: string
  detail?: string
  state?: { state: State; of: keyof typeof WORDS }
  keys?: readonly string[]
  run: () => void
}

export interface Group {
  id: string
  title: string
  entries: readonly Entry[]
}

/** Whose words the states of a kind are; other kinds are shown without. */
const STATES_OF: Partial<Record<FoundKind, keyof typeof WORDS>> = {
  job: 'job',
  evaluation: 'job',
  dataset: 'dataset',
  model: 'model',
  report: 'report',
  endpoint: 'endpoint',
  environment: 'environment',
  job_pipeline: 'stage',
  sweep: 'sweep',
}

export const ICONS: Readonly<Record<FoundKind, IconName>> = {
  job: 'jobs',
  sweep: 'jobs',
  job_pipeline: 'jobs',
  dataset: 'datasets',
  pipeline: 'pipelines',
  model: 'models',
  named_model: 'models',
  endpoint: 'models',
  evaluation: 'evaluations',
  report: 'file',
  environment: 'environments',
  workflow: 'environments',
  reward_file: 'rewards',
}

const ROUTES: Partial<Record<FoundKind, string>> = {
  job: 'job',
  sweep: 'sweep',
  dataset: 'dataset',
  model: 'model',
  evaluation: 'evaluation',
  report: 'report',
  pipeline: 'pipeline',
  job_pipeline: 'job-pipeline',
  environment: 'environment',
}

/** The page of something that was found. */
export function findRoute({ kind, id }: Pick<FoundItem, 'kind' | 'id'>): RouteLocationRaw {
  if (kind === 'named_model') return { name: 'named-model', params: { name: id } }
  if (kind === 'endpoint') return { name: 'playground', query: { m: id } }
  if (kind === 'workflow') return { name: 'workflows', query: { open: id } }
  if (kind === 'reward_file') return { name: 'rewards', query: { tab: 'files' } }
  return { name: ROUTES[kind], params: { id } }
}

export function findState({ kind, state }: Pick<FoundItem, 'kind' | 'state'>): Entry['state'] {
  const of = STATES_OF[kind]
  return of === undefined || state === null || !(state in MARKS) ? undefined : { state: state as State, of }
}

/** Entries with every word of the text, those that begin with it first. */
export function narrow(entries: readonly Entry[], text: string): Entry[] {
  const fitting = entries.filter(({ label, words }) => hasWords(`${label} ${words ?? ''}`, text))
  const first = split(text)[0] ?? ''
  return fitting.sort((a, b) => rank(a, first) - rank(b, first))
}

/** Whether every word of the text stands in another, in any case. */
export function hasWords(own: string, text: string): boolean {
  const lower = own.toLowerCase()
  return split(text).every((word) => lower.includes(word))
}

function split(text: string): string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
}

function rank({ label }: Entry, word: string): number {
  const text = label.toLowerCase()
  if (text.startsWith(word)) return 0
  return text.includes(word) ? 1 : 2
}
