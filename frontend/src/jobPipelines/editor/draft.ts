/** Stages as the form holds them, from a template or from another pipeline, and the request that they become. */
import type { Locale } from '@/i18n'

import type { JobPipelineCreate, StageCreate, Template } from '../types'

type Order = Readonly<Record<string, unknown>>

export interface StageDraft {
  id: string
  title: string
  kind: 'train' | 'evaluate'
  /** Whose model it starts from; null: the one that is chosen for the whole pipeline. */
  modelStage: string | null
  needs: string[]
  recipe: string | null
  preset: string | null
  dataset: string | null
  datasetSplit: string | null
  /** What rows it needs, in words. */
  wants: string
  params: Record<string, unknown>
  exports: boolean
  /** Of an evaluation; those over rows of the platform take `dataset` and `datasetSplit`. */
  benchmarks: Order[]
  isOptional: boolean
  isIncluded: boolean
  /** What the form does not show and a copy keeps. */
  rest: Partial<StageCreate>
}

export interface PipelineDraft {
  name: string
  description: string
  baseModel: string | null
  stages: StageDraft[]
}

export function emptyDraft(): PipelineDraft {
  return { name: '', description: '', baseModel: null, stages: [] }
}

export function draftOfTemplate(template: Template, language: Locale): StageDraft[] {
  return template.stages.map((stage) => ({
    id: stage.id,
    title: stage.title[language],
    kind: stage.kind,
    modelStage: stage.model_stage ?? null,
    needs: stage.needs ?? [],
    recipe: stage.recipe ?? null,
    preset: stage.preset ?? null,
    dataset: null,
    datasetSplit: stage.dataset_split ?? null,
    wants: stage.dataset?.[language] ?? '',
    params: stage.params ?? {},
    exports: stage.exports,
    benchmarks: stage.benchmarks ?? [],
    isOptional: stage.is_optional,
    isIncluded: true,
    rest: {},
  }))
}

export function draftOfStages(stages: readonly StageCreate[]): Pick<PipelineDraft, 'baseModel' | 'stages'> {
  return {
    baseModel: stages.find((stage) => stage.model.base != null)?.model.base ?? null,
    stages: stages.map((stage) => {
      const {
        id,
        title,
        kind,
        model,
        needs,
        recipe,
        preset,
        dataset,
        dataset_split: split,
        params,
        exports,
        benchmarks,
        ...rest
      } = stage
      const ofRows = benchmarks?.find((order) => order.benchmark === 'custom')
      return {
        id,
        kind,
        exports,
        rest,
        title: title ?? id,
        modelStage: model.stage ?? null,
        needs: (needs ?? []).filter((need) => need !== model.stage),
        recipe: recipe ?? null,
        preset: preset ?? null,
        dataset: dataset ?? ofRows?.dataset ?? null,
        datasetSplit: split ?? ofRows?.split ?? null,
        wants: '',
        params: params ?? {},
        benchmarks: (benchmarks ?? []).map((order) => ({ ...order })),
        isOptional: false,
        isIncluded: true,
      }
    }),
  }
}

/** Whether a stage has rows to choose: a training, and an evaluation over rows of the platform. */
export function takesRows({ kind, benchmarks }: Pick<StageDraft, 'kind' | 'benchmarks'>): boolean {
  return kind === 'train' || benchmarks.some((order) => order.benchmark === 'custom')
}

/** What stands for a stage that is left out: whatever it came from itself. */
function standIns(stages: readonly StageDraft[]) {
  const left = new Map(stages.filter((stage) => !stage.isIncluded).map((stage) => [stage.id, stage]))
  const modelOf = (id: string | null): string | null => {
    const out = id === null ? undefined : left.get(id)
    return out === undefined ? id : modelOf(out.modelStage)
  }
  const needsOf = (ids: readonly string[]): string[] => [
    ...new Set(
      ids.flatMap((id) => {
        const out = left.get(id)
        return out === undefined ? [id] : needsOf([...out.needs, ...(out.modelStage === null ? [] : [out.modelStage])])
      }),
    ),
  ]
  return { modelOf, needsOf }
}

/** What is missing before the request can be sent; ids of stages without rows. */
export function missingRows({ stages }: Pick<PipelineDraft, 'stages'>): string[] {
  return stages
    .filter((stage) => stage.isIncluded && takesRows(stage) && stage.dataset === null)
    .map((stage) => stage.id)
}

export function toRequest(draft: PipelineDraft): JobPipelineCreate {
  const { modelOf, needsOf } = standIns(draft.stages)
  return {
    name: draft.name.trim(),
    description: draft.description.trim(),
    start: false,
    stages: draft.stages
      .filter((stage) => stage.isIncluded)
      .map((stage) => toStage(stage, modelOf(stage.modelStage), needsOf(stage.needs), draft.baseModel)),
  }
}

function toStage(stage: StageDraft, model: string | null, needs: string[], baseModel: string | null): StageCreate {
  const common = {
    ...stage.rest,
    id: stage.id,
    title: stage.title,
    kind: stage.kind,
    needs: needs.filter((need) => need !== model),
    model: model === null ? { base: baseModel } : { stage: model },
    seed: stage.rest.seed ?? 1,
    priority: stage.rest.priority ?? 0,
    exports: stage.exports,
  }
  if (stage.kind === 'evaluate')
    return {
      ...common,
      benchmarks: stage.benchmarks.map((order) => withRows(order, stage)) as StageCreate['benchmarks'],
    }
  return {
    ...common,
    recipe: stage.recipe,
    preset: stage.preset,
    dataset: stage.dataset,
    dataset_split: stage.datasetSplit,
    params: stage.params,
  }
}

function withRows(order: Order, { dataset, datasetSplit }: StageDraft): Order {
  if (order.benchmark !== 'custom') return order
  return { ...order, dataset, ...(datasetSplit === null ? {} : { split: datasetSplit }) }
}
