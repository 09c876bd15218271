/** What varies in a launch, and how it becomes a sweep. */
import { roundTo } from '@/format/numbers'
import type { SweepCreate, Variation } from '@/sweeps'

import type { JobCreate, Parameter } from '../../types'

export type VaryKind = 'list' | 'range' | 'log'
export type Method = 'grid' | 'random' | 'bayesian' | 'asha'
export const METHODS: readonly Method[] = ['grid', 'random', 'bayesian', 'asha']

/** As typed: numbers stay texts until they are read. */
export interface Vary {
  kind: VaryKind
  /** Of a list: values between commas. */
  text: string
  min: string
  max: string
  /** Points of a range; empty for draws between its ends. */
  count: string
}

export interface SweepDraft {
  isOpen: boolean
  vary: Record<string, Vary>
  /** Between commas; fewer than two are no sweep by themselves. */
  seeds: string
  method: Method
  runs: number | null
  parallel: number | null
  hours: number | null
  slotHours: number | null
  /** In the platform's currency. */
  cost: number | null
  /** Empty: the recipe's own. */
  metric: string
  mode: 'min' | 'max' | null
  rule: 'none' | 'asha' | 'median'
  minSteps: number
}

export function emptySweep(): SweepDraft {
  return {
    isOpen: false,
    vary: {},
    seeds: '',
    method: 'grid',
    runs: 20,
    parallel: null,
    hours: null,
    slotHours: null,
    cost: null,
    metric: '',
    mode: null,
    rule: 'none',
    minSteps: 10,
  }
}

/** Which end is the good one is said of one metric: another begins with what its name says. */
export function chooseMetric(draft: SweepDraft, metric: string): void {
  if (metric !== draft.metric) draft.mode = null
  draft.metric = metric
}

const SPECIAL = new Set(['rewards', 'environment', 'workflow'])

export function canVary(parameter: Parameter): boolean {
  return !SPECIAL.has(parameter.type)
}

/** What suits a parameter to begin with: words and switches take all they can, numbers what stands there. */
export function startVary(parameter: Parameter, value: unknown): Vary {
  const isNumber = parameter.type === 'int' || parameter.type === 'float'
  const words = parameter.type === 'bool' ? ['true', 'false'] : (parameter.choices ?? [])
  const text =
    isNumber && typeof value === 'number' ? aroundNumber(value, parameter.type === 'int').join(', ') : words.join(', ')
  return { kind: 'list', text, min: '', max: '', count: '' }
}

function aroundNumber(value: number, isInteger: boolean): number[] {
  if (value === 0) return isInteger ? [0, 1] : [0, 0.1]
  const around = isInteger ? [Math.max(1, Math.round(value / 2)), value, value * 2] : [value / 3, value, value * 3]
  return [...new Set(around.map((each) => roundTo(each, 1 + (isInteger ? 5 : 0))))]
}

function toNumber(text: string): number | null {
  const trimmed = text.trim()
  if (trimmed === '') return null
  const value = Number(trimmed)
  return Number.isFinite(value) ? value : null
}

/** One value of a list, as the parameter's type has it; undefined where it cannot be read. */
function readItem(item: string, type: Parameter['type']): number | boolean | string | undefined {
  if (type === 'int' || type === 'float') return toNumber(item) ?? undefined
  if (type !== 'bool') return item
  return item === 'true' ? true : item === 'false' ? false : undefined
}

/** The variation that was typed; null where it cannot be read. */
export function toVariation(vary: Vary, type: Parameter['type']): Variation | null {
  if (vary.kind === 'list') {
    const items = vary.text
      .split(/[,，\n]/)
      .map((item) => item.trim())
      .filter((item) => item !== '')
    const values = items.map((item) => readItem(item, type))
    const read = values.filter((value) => value !== undefined)
    return read.length === 0 || read.length < values.length ? null : { values: read, scale: 'linear' }
  }
  const min = toNumber(vary.min)
  const max = toNumber(vary.max)
  const count = toNumber(vary.count)
  if (min === null || max === null || (vary.count.trim() !== '' && count === null)) return null
  return { min, max, scale: vary.kind === 'log' ? 'log' : 'linear', ...(count === null ? {} : { count }) }
}

/** The seeds that were typed; null where they cannot be read. `1-5` means five. */
export function readSeeds(text: string): number[] | null {
  const parts = text.split(/[,，\s]+/).filter((part) => part !== '')
  const seeds = parts.flatMap((part) => {
    const span = /^(\d+)-(\d+)$/.exec(part)
    if (span === null) return /^\d+$/.test(part) ? [Number(part)] : [Number.NaN]
    const [from, to] = [Number(span[1]), Number(span[2])]
    return to < from || to - from >= 50
      ? [Number.NaN]
      : Array.from({ length: to - from + 1 }, (_, index) => from + index)
  })
  return seeds.some(Number.isNaN) ? null : [...new Set(seeds)]
}

export function isSweep(draft: SweepDraft): boolean {
  return Object.keys(draft.vary).length > 0 || (readSeeds(draft.seeds)?.length ?? 0) > 1
}

/** Seeds that the address asks for, such as those that a comparison lacks; nothing where they cannot be read. */
export function seedsInAddress(query: unknown): Partial<SweepDraft> {
  return typeof query === 'string' && (readSeeds(query)?.length ?? 0) > 0 ? { seeds: query } : {}
}

/** The parameters that cannot be read, and `seeds`. */
export function unreadableOf(draft: SweepDraft, parameters: readonly Parameter[]): string[] {
  const types = new Map(parameters.map((parameter) => [parameter.name, parameter.type]))
  const wrong = Object.entries(draft.vary)
    .filter(([name, vary]) => toVariation(vary, types.get(name) ?? 'str') === null)
    .map(([name]) => name)
  return readSeeds(draft.seeds) === null ? [...wrong, 'seeds'] : wrong
}

/** The request of a sweep; null while something cannot be read, or nothing varies. */
export function toSweep(draft: SweepDraft, job: JobCreate, parameters: readonly Parameter[]): SweepCreate | null {
  if (!isSweep(draft) || unreadableOf(draft, parameters).length > 0) return null
  const types = new Map(parameters.map((parameter) => [parameter.name, parameter.type]))
  const { name } = job
  // Runs would share the model's name; the best one is exported afterwards.
  const rest = Object.fromEntries(Object.entries(job).filter(([key]) => key !== 'export_as')) as JobCreate
  const varied = Object.fromEntries(
    Object.entries(draft.vary).flatMap(([key, vary]) => {
      const variation = toVariation(vary, types.get(key) ?? 'str')
      return variation === null ? [] : [[key, variation]]
    }),
  )
  const hasParameters = Object.keys(varied).length > 0
  const method = hasParameters ? draft.method : 'grid'
  const rule = method === 'asha' && draft.rule === 'none' ? 'asha' : draft.rule
  return {
    name: name.slice(0, 120),
    job: rest,
    parameters: varied,
    seeds: readSeeds(draft.seeds) ?? [],
    search: { method, seed: 0 },
    objective: { metric: draft.metric.trim() === '' ? null : draft.metric.trim(), mode: draft.mode, take: null },
    budget: {
      runs: method === 'grid' ? null : draft.runs,
      hours: draft.hours,
      slot_hours: draft.slotHours,
      cost: draft.cost,
    },
    parallel: draft.parallel,
    early_stop: rule === 'none' ? null : { rule, min_steps: draft.minSteps, factor: 3, min_runs: 3 },
  }
}
