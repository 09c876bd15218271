/** A pipeline as text, as `trellis job-pipelines` takes it. */
import { isRecord } from '@/api/json'
import { toYaml } from '@/ui/tree/yaml'

import type { JobPipelineCreate } from '../types'

/** What a stage is without being told. */
const DEFAULTS: Readonly<Record<string, unknown>> = { kind: 'train', seed: 1, priority: 0, exports: true }
/** Stand for what is still to be chosen, as in the files of the command line. */
const MODEL = 'MODEL'
const DATASET = 'DATASET'

function isEmpty(value: unknown): boolean {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  )
}

function short(
  record: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([key, value]) => !isEmpty(value) && defaults[key] !== value))
}

function stageText(stage: JobPipelineCreate['stages'][number]): Record<string, unknown> {
  const { id, title, kind, ...rest } = stage
  const model = stage.model.stage != null ? { stage: stage.model.stage } : { base: stage.model.base ?? MODEL }
  const rows = kind === 'evaluate' ? {} : { dataset: stage.dataset ?? DATASET }
  const benchmarks = stage.benchmarks?.map((order) =>
    isRecord(order)
      ? short(order.benchmark === 'custom' ? { ...order, dataset: order.dataset ?? DATASET } : order)
      : order,
  )
  return { id, ...short({ title, kind, ...rest, ...rows, benchmarks, model }, DEFAULTS) }
}

/** Without what is default, so that a person can read it. */
export function toText({ name, description, stages }: JobPipelineCreate): string {
  return toYaml({ name, ...short({ description }), stages: stages.map(stageText) })
}

/** How many kinds of rows the stage's own benchmarks are over. */
function countRows({ benchmarks }: Pick<JobPipelineCreate['stages'][number], 'benchmarks'>): number {
  const ofRows = (benchmarks ?? []).filter((order) => order.benchmark === 'custom')
  return new Set(ofRows.map((order) => JSON.stringify([order.dataset ?? null, order.split ?? null]))).size
}

/** Whether the form can hold all of it: there, one model stands at the beginning, and a stage measures on one dataset and split. */
export function fitsForm({ stages }: Pick<JobPipelineCreate, 'stages'>): boolean {
  const models = new Set(stages.flatMap(({ model }) => (model.base == null ? [] : [model.base])))
  return models.size <= 1 && stages.every((stage) => countRows(stage) <= 1)
}
