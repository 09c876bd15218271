/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'
import type { ParameterRow } from '@/charts/axes'

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
export function lacksSeeds({
  finished_seeds: finished,
  planned_seeds: planned,
}: Pick<Trial, 'finished_seeds' | 'planned_seeds'>): boolean {
  return planned > 1 && finished < planned
}

/** Runs with a value, each with all that varies; the seed is a parameter where it does. */
export function measuredRuns(runs: readonly SweepRun[], nameOf: (run: SweepRun) => string): ParameterRow[] {
  const hasSeeds = new Set(runs.map((run) => run.seed)).size > 1
  return runs.flatMap((run) =>
    run.value === null
      ? []
      : [
          {
            id: run.index,
            label: nameOf(run),
            values: hasSeeds ? { ...run.values, seed: run.seed } : run.values,
            value: run.value,
            isPartial: run.state !== 'succeeded',
          },
        ],
  )
}
