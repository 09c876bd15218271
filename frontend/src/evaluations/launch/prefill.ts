/** What a link to the form fills in: models, checkpoints, benchmarks. */
import type { LocationQuery } from 'vue-router'

import { type BenchmarkName, type CheckpointChoice, orderable } from './draft'

export interface Prefill {
  models: string[]
  checkpoints: CheckpointChoice[]
  benchmarks: BenchmarkName[]
}

function texts(value: LocationQuery[string] | undefined): string[] {
  return [value].flat().filter((one): one is string => typeof one === 'string' && one !== '')
}

/** `?model=…&model=…`, `?job=…&step=…` (several in the same order), `?benchmarks=gsm8k,math500`; the rest is left out. */
export function readPrefill(query: LocationQuery): Prefill {
  const steps = texts(query.step)
  const checkpoints = texts(query.job).flatMap((job, index): CheckpointChoice[] => {
    const text = steps[index] ?? ''
    return /^\d+$/.test(text) ? [{ job, name: job, step: Number(text) }] : []
  })
  const names = texts(query.benchmarks).flatMap((list) => list.split(','))
  return {
    models: [...new Set(texts(query.model))],
    checkpoints,
    benchmarks: names.flatMap((name) => orderable(name) ?? []),
  }
}
