/** Measured scores as the lines of a chart: those together that were measured alike. */
import type { ScoreLine, ScorePoint } from '@/charts/scores'
import type { components } from '@/api/schema'

import type { MeasuredDataset } from '../types'

export type HistoryPoint = components['schemas']['HistoryPoint']

export interface Series {
  /** Label and metric, as an address keeps them. */
  key: string
  label: string
  benchmark: string
  metric: string
  dataset: MeasuredDataset | null
}

/** Label and metric; one label on two datasets is two series. */
function keyOf({ label, dataset, score }: HistoryPoint): string {
  return [label, score.metric, ...(dataset === null ? [] : [dataset.id])].join('/')
}

/** What was measured, each once, in the order of the first measurement; scores of a dataset's versions together. */
export function seriesOf(items: readonly HistoryPoint[]): Series[] {
  const found = new Map<string, Series>()
  for (const item of items) {
    const key = keyOf(item)
    const { label, benchmark, score, dataset } = item
    if (!found.has(key))
      found.set(key, { key, label, benchmark, metric: score.metric, dataset: dataset && { ...dataset, version: null } })
  }
  return [...found.values()]
}

export function itemsOf(items: readonly HistoryPoint[], series: Series | null): HistoryPoint[] {
  return series === null ? [] : items.filter((item) => keyOf(item) === series.key)
}

function targetKey({ target }: HistoryPoint): string {
  return target.kind === 'model'
    ? `model:${target.model?.id ?? target.name}`
    : `job:${target.job?.id ?? target.name}:${target.step ?? ''}`
}

/** Place of each target on an axis of order: by its first measurement. */
export function placesOf(items: readonly HistoryPoint[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const item of items) {
    const key = targetKey(item)
    if (!places.has(key)) places.set(key, places.size)
  }
  return places
}

/** `axis` step: where the checkpoints are; order: one place for each target. Lines are named by `nameOf`. */
export function linesOf(
  items: readonly HistoryPoint[],
  axis: 'step' | 'order',
  nameOf: (configuration: string, index: number) => string,
  targetName: (item: HistoryPoint) => string,
): ScoreLine[] {
  const places = placesOf(items)
  const byConfiguration = new Map<string, ScorePoint[]>()
  for (const item of items) {
    const x = axis === 'step' ? item.target.step : (places.get(targetKey(item)) ?? null)
    if (x === null) continue
    const { value, low, high } = item.score
    const point = { id: item.evaluation_id, x, label: targetName(item), value, low: low ?? null, high: high ?? null }
    const known = byConfiguration.get(item.configuration)
    if (known === undefined) byConfiguration.set(item.configuration, [point])
    else known.push(point)
  }
  return [...byConfiguration].map(([configuration, points], index) => ({
    id: configuration,
    label: nameOf(configuration, index),
    points,
  }))
}

/** A, B, ... Z, 27, 28: few have more settings than that. */
export function letterOf(index: number): string {
  return index < 26 ? String.fromCharCode(65 + index) : String(index + 1)
}
