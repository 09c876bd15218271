/** What the comparison shows, as the address bar keeps it: a link shows the same. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import type { XAxis } from '@/charts/lines'
import { readScales, writeScales, type YScale } from '@/charts/yScale'

import { single } from '../list/filters'
import { cutTo } from '../shared/cut'

export const MOST_JOBS = 20
/** Runs from which on a parameter is drawn against a metric. */
export const LEAST_DRAWN = 4
export const AXES = ['step', 'time', 'tokens', 'wall'] as const satisfies readonly XAxis[]
export const TABS = ['charts', 'settings', 'parameters', 'metrics', 'evaluations', 'rollouts'] as const
export type CompareTab = (typeof TABS)[number]

/** A run's newest value of a metric, or its best. */
export type Take = 'last' | 'best'
export const SPLITS = ['validation', 'train'] as const
export type Split = (typeof SPLITS)[number]

export interface CompareView {
  ids: string[]
  /** How many the address names, where they are too many to be compared. */
  cutFrom: number | null
  /** Jobs whose curves are out of sight. */
  hidden: string[]
  baseline: string | null
  axis: XAxis
  tab: CompareTab
  /** Metrics beside the usual ones. */
  keys: string[]
  /** Runs that differ only in the seed as one mean. */
  areSeedsJoined: boolean
  smoothing: number
  /** Of the charts whose y axis the reader has set, by metric. */
  scales: ReadonlyMap<string, YScale>
  /** By which runs are ranked; null leaves it to the server. */
  metric: string | null
  take: Take | null
  /** Of the responses side by side; the step is null for the newest of each run. */
  split: Split
  step: number | null
}

function list(value: LocationQuery[string] | undefined): string[] {
  const texts = [value].flat().filter((one): one is string => typeof one === 'string')
  return [...new Set(texts.flatMap((text) => text.split(',')).filter((text) => text !== ''))]
}

export function readView(query: LocationQuery): CompareView {
  const { shown: ids, total } = cutTo(
    list(query.ids).filter((id) => /^job_\w+$/.test(id)),
    MOST_JOBS,
  )
  const baseline = single(query.baseline)
  const smoothing = Number(single(query.smoothing) ?? 0)
  return {
    ids,
    cutFrom: total,
    hidden: list(query.hidden).filter((id) => ids.includes(id)),
    baseline: baseline !== null && ids.includes(baseline) ? baseline : null,
    axis: AXES.find((axis) => axis === single(query.x)) ?? 'step',
    tab: TABS.find((tab) => tab === single(query.tab)) ?? 'charts',
    keys: [query.key].flat().filter((key): key is string => typeof key === 'string' && key !== ''),
    areSeedsJoined: single(query.seeds) === '1',
    smoothing: smoothing >= 0 && smoothing <= 0.99 ? smoothing : 0,
    scales: readScales([query.scale].flat()),
    metric: single(query.metric),
    take: (['last', 'best'] as const).find((take) => take === single(query.take)) ?? null,
    split: SPLITS.find((split) => split === single(query.split)) ?? 'validation',
    step: /^\d{1,9}$/.test(single(query.step) ?? '') ? Number(single(query.step)) : null,
  }
}

export function writeView(view: CompareView): LocationQueryRaw {
  const query: LocationQueryRaw = {}
  if (view.ids.length > 0) query.ids = view.ids.join(',')
  if (view.hidden.length > 0) query.hidden = view.hidden.join(',')
  if (view.baseline !== null) query.baseline = view.baseline
  if (view.axis !== 'step') query.x = view.axis
  if (view.tab !== 'charts') query.tab = view.tab
  if (view.keys.length > 0) query.key = view.keys
  if (view.areSeedsJoined) query.seeds = '1'
  if (view.smoothing > 0) query.smoothing = String(view.smoothing)
  const scales = writeScales(view.scales)
  if (scales.length > 0) query.scale = scales
  if (view.metric !== null) query.metric = view.metric
  if (view.take !== null) query.take = view.take
  if (view.split !== 'validation') query.split = view.split
  if (view.step !== null) query.step = String(view.step)
  return query
}
