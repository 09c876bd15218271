/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Sweep = Schemas['SweepRead']
export type SweepSummary = Schemas['SweepSummary']
export type SweepRun = Schemas['SweepRunRead']
export type Trial = Schemas['TrialRead']
export type SweepCreate = Schemas['SweepCreate']
export type SweepPreview = Schemas['SweepPreview']
export type Variation = Schemas['Variation']
export type ParameterImportance = Schemas['ParameterImportance']

/** Whether it moves without anybody asking. */
export function isUnderWay({ state }: Pick<SweepSummary, 'state'>): boolean {
  return state === 'running' || state === 'stopping'
}

/** Whether the mean of a trial lacks seeds that were planned. */
export function lacksSeeds({ finished_seeds: finished, planned_seeds: planned }: Pick<Trial, 'finished_seeds' | 'planned_seeds'>): boolean {
  return planned > 1 && finished < planned
}

/** A value of a parameter as a person reads it. */
export function showValue(value: unknown): string {
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value)
  const rounded = Number(value.toPrecision(4))
  return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 ? String(rounded) : rounded.toExponential().replace('e+', 'e')
}
