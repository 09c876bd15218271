/** What stands in the launch form, and how it becomes a request. */
import { isTerm, type RewardTerm } from '@/rewards'

import type { DataFormat, Issue, Job, JobCreate, Parameter, ParameterChange, Preset, Recipe } from '../types'
import { emptyEvaluate, type EvaluateDraft, evaluateOfJob, toEvaluate } from './evaluating/draft'
import { emptyReport, type ReportDraft, reportOfJob, toReport } from './reporting/draft'

/** A list of rewards is the one value that is not plain. */
export type ParameterValue = number | boolean | string | null | RewardTerm[]

export interface OverrideRow {
  id: number
  key: string
  /** As typed: `0.5`, `true`, `[a, b]`, or plain text. */
  text: string
}

export interface Draft {
  name: string
  recipe: string
  /** By a person; else it goes with the data. */
  isRecipeChosen: boolean
  preset: string | null
  model: string | null
  dataset: string | null
  /** Branch, tag or id, and a split; null leaves them to the platform. */
  datasetVersion: string | null
  datasetSplit: string | null
  validationDataset: string | null
  validationVersion: string | null
  /** Without a validation dataset: a split of the training dataset. */
  validationSplit: string | null
  /** Parameters that override the preset or the recipe. */
  params: Record<string, ParameterValue>
  /** Role → column, and the format to read the rows as; empty and null leave it to the platform. */
  columns: Record<string, string>
  dataFormat: DataFormat | null
  /** The same of the validation's rows; what is left open is as for the training data. */
  validationColumns: Record<string, string>
  validationFormat: DataFormat | null
  /** Name of the model to make when the run has succeeded; empty for none. */
  exportName: string
  /** Metric that tells the best checkpoint; null for the recipe's own. */
  bestBy: string | null
  /** What the checkpoints are measured on. */
  evaluate: EvaluateDraft
  /** Where the metrics are sent as well. */
  report: ReportDraft
  overrides: OverrideRow[]
  seed: number
  gpus: number
  tags: string[]
  priority: number
}

let lastRowId = 0

export function overrideRow(key = '', text = ''): OverrideRow {
  lastRowId += 1
  return { id: lastRowId, key, text }
}

export function emptyDraft(): Draft {
  return {
    name: '',
    recipe: '',
    isRecipeChosen: false,
    preset: null,
    model: null,
    dataset: null,
    datasetVersion: null,
    datasetSplit: null,
    validationDataset: null,
    validationVersion: null,
    validationSplit: null,
    params: {},
    columns: {},
    dataFormat: null,
    validationColumns: {},
    validationFormat: null,
    exportName: '',
    bestBy: null,
    evaluate: emptyEvaluate(),
    report: emptyReport(),
    overrides: [],
    seed: 1,
    gpus: 1,
    tags: [],
    priority: 0,
  }
}

export function isParameterValue(value: unknown): value is ParameterValue {
  return (
    value === null ||
    ['number', 'boolean', 'string'].includes(typeof value) ||
    (Array.isArray(value) && value.every(isTerm))
  )
}

/** The terms in a parameter's value; none where it holds something else. */
export function termsIn(value: ParameterValue | undefined): RewardTerm[] {
  return Array.isArray(value) ? value : []
}

/** What a job read, as exactly as it says; of a dataset that is gone there is nothing to say. */
function revisionsOfJob(
  job: Job,
): Pick<
  Draft,
  | 'datasetVersion'
  | 'datasetSplit'
  | 'validationDataset'
  | 'validationVersion'
  | 'validationSplit'
  | 'validationColumns'
  | 'validationFormat'
> {
  const hasData = job.dataset?.name != null
  const validation = job.validation_dataset?.name == null ? null : job.validation_dataset.id
  return {
    datasetVersion: hasData ? job.dataset_version : null,
    datasetSplit: hasData ? job.dataset_split : null,
    validationDataset: validation,
    validationVersion: validation === null ? null : job.validation_version,
    validationSplit: validation === null ? null : job.validation_split,
    validationColumns: validation === null ? {} : { ...job.validation_columns },
    validationFormat: validation === null ? null : job.validation_data_format,
  }
}

/** A draft that asks for the same as a job did. */
export function draftOfJob(job: Job, name: string): Draft {
  return {
    name,
    recipe: job.recipe,
    isRecipeChosen: true,
    preset: job.preset,
    model: job.model.name === null ? null : job.model.id,
    dataset: job.dataset?.name == null ? null : job.dataset.id,
    ...revisionsOfJob(job),
    params: Object.fromEntries(
      Object.entries(job.params).filter((entry): entry is [string, ParameterValue] => isParameterValue(entry[1])),
    ),
    columns: { ...job.columns },
    dataFormat: job.data_format,
    exportName: job.export_as?.name ?? '',
    bestBy: job.export_as?.best_by ?? job.keep_best_by?.metric ?? null,
    evaluate: evaluateOfJob(job),
    report: reportOfJob(job),
    overrides: Object.entries(job.overrides).map(([key, value]) => overrideRow(key, writeValue(value))),
    seed: job.seed,
    gpus: job.resources.gpus,
    tags: [...job.tags],
    priority: job.priority,
  }
}

/** The same with what is suggested against a failure. */
export function withChanges(draft: Draft, changes: readonly ParameterChange[]): Draft {
  return {
    ...draft,
    params: { ...draft.params, ...Object.fromEntries(changes.map((change) => [change.parameter, change.suggested])) },
  }
}

/** The value of an override as typed: JSON where it is JSON, else text. */
export function readValue(text: string): unknown {
  const trimmed = text.trim()
  // Python's and YAML's spellings, because people copy from there.
  if (['True', 'False', 'None'].includes(trimmed)) return { True: true, False: false, None: null }[trimmed]
  try {
    return JSON.parse(trimmed) as unknown
  } catch (cause) {
    if (cause instanceof SyntaxError) return trimmed
    throw cause
  }
}

export function writeValue(value: unknown): string {
  return typeof value === 'string' && typeof readValue(value) === 'string' ? value : JSON.stringify(value)
}

export function presetOf(recipe: Recipe, id: string | null): Preset | null {
  return recipe.presets.find((preset) => preset.id === id) ?? null
}

/** Whether a parameter may hold nothing. */
export function canBeEmpty(parameter: Parameter): boolean {
  return parameter.default === null || parameter.can_be_empty
}

/** What a parameter is without an override. */
export function inheritedValue(parameter: Parameter, preset: Preset | null): ParameterValue {
  const fromPreset: unknown = preset?.params?.[parameter.name]
  return fromPreset !== undefined && isParameterValue(fromPreset) ? fromPreset : parameter.default
}

/** Whether a preset has sizes for this platform, or for a size of model on any. */
export function suitsPlatform(preset: string, platform: string): boolean {
  if (preset.startsWith('cpu-')) return platform === 'cpu'
  return !preset.startsWith('gpu-') || platform === 'cuda'
}

/** The presets for 80 GB suit no smaller card, as the server has it. */
const LARGE_GPU_BYTES = 79 * 1024 ** 3

/** The preset that suits the machine: on a CPU the tiny one, else the largest that its GPUs carry and have memory for. */
export function presetForMachine(
  recipe: Recipe,
  platform: string,
  slots: number,
  gpuBytes: number | null,
): string | null {
  const isLarge = gpuBytes === null ? slots >= 8 : gpuBytes >= LARGE_GPU_BYTES
  const tooLarge = isLarge ? ['gpu-24gb'] : ['gpu-80gb', 'gpu-8x80gb']
  const fitting = recipe.presets.filter(
    (preset) =>
      (platform !== 'cpu' || preset.id === 'cpu-tiny') &&
      suitsPlatform(preset.id, platform) &&
      !tooLarge.includes(preset.id) &&
      preset.gpus <= Math.max(1, slots),
  )
  const largest = fitting.reduce<Preset | null>(
    (best, preset) => (best === null || preset.gpus > best.gpus ? preset : best),
    null,
  )
  return largest?.id ?? recipe.presets[0]?.id ?? null
}

export function toRequest(draft: Draft, fallbackName: string): JobCreate {
  const overrides = draft.overrides.filter((row) => row.key.trim() !== '')
  const request: JobCreate = {
    name: draft.name.trim() === '' ? fallbackName : draft.name.trim(),
    recipe: draft.recipe,
    preset: draft.preset,
    model: draft.model ?? '',
    dataset: draft.dataset ?? '',
    params: { ...draft.params },
    overrides: Object.fromEntries(overrides.map((row) => [row.key.trim(), readValue(row.text)])),
    seed: draft.seed,
    resources: { gpus: draft.gpus },
    tags: draft.tags,
    priority: draft.priority,
  }
  if (Object.keys(draft.columns).length > 0) request.columns = { ...draft.columns }
  if (draft.dataFormat !== null) request.data_format = draft.dataFormat
  if (draft.bestBy !== null) request.keep_best_by = { metric: draft.bestBy }
  if (draft.exportName.trim() !== '') request.export_as = { name: draft.exportName.trim(), best_by: draft.bestBy }
  if (draft.datasetVersion !== null) request.dataset_version = draft.datasetVersion
  if (draft.datasetSplit !== null) request.dataset_split = draft.datasetSplit
  if (draft.validationDataset !== null) request.validation_dataset = draft.validationDataset
  if (draft.validationDataset !== null && draft.validationVersion !== null)
    request.validation_version = draft.validationVersion
  if (draft.validationSplit !== null) request.validation_split = draft.validationSplit
  if (draft.validationDataset !== null || draft.validationSplit !== null) {
    if (Object.keys(draft.validationColumns).length > 0) request.validation_columns = { ...draft.validationColumns }
    if (draft.validationFormat !== null) request.validation_data_format = draft.validationFormat
  }
  const evaluate = toEvaluate(draft.evaluate)
  if (evaluate !== null) request.evaluate = evaluate
  const report = toReport(draft.report)
  if (report != null) request.report_to = report
  return request
}

/** Sets a parameter; a value that the parameter has anyway is not kept, so that a later change of preset still moves it. */
export function setParam(draft: Draft, parameter: Parameter, preset: Preset | null, value: ParameterValue): void {
  const params = { ...draft.params, [parameter.name]: value }
  if (value === inheritedValue(parameter, preset)) draft.params = without(params, parameter.name)
  else draft.params = params
}

function without(params: Record<string, ParameterValue>, name: string): Record<string, ParameterValue> {
  return Object.fromEntries(Object.entries(params).filter(([key]) => key !== name))
}

function readParameter(parameter: Parameter | undefined, text: string): ParameterValue {
  if (parameter?.type === 'int' || parameter?.type === 'float') return Number(text)
  if (parameter?.type === 'bool') return text === 'true' || text === 'True'
  return text
}

/** Puts an issue's suggestion in place; false where the form does not know how. */
export function applySuggestion(draft: Draft, recipe: Recipe, issue: Issue): boolean {
  const suggestion = issue.suggestion
  if (suggestion === null || suggestion === undefined) return false
  const [area, name] = splitField(issue.field)
  const preset = presetOf(recipe, draft.preset)
  if (area === 'params') {
    const value = draft.params[name]
    if (issue.code === 'unknown_parameter') {
      draft.params = without(draft.params, name)
      const parameter = recipe.parameters.find((one) => one.name === suggestion)
      if (parameter !== undefined && value !== undefined) setParam(draft, parameter, preset, value)
      return true
    }
    draft.params = {
      ...draft.params,
      [name]: readParameter(
        recipe.parameters.find((one) => one.name === name),
        suggestion,
      ),
    }
    return true
  }
  if (area === 'overrides') return suggestOverride(draft, recipe, name, issue.code, suggestion)
  if (issue.field === 'recipe' || issue.field === 'preset') {
    draft[issue.field] = suggestion
    return true
  }
  if (issue.field === 'resources.gpus') {
    draft.gpus = Number(suggestion)
    return true
  }
  return false
}

function suggestOverride(draft: Draft, recipe: Recipe, key: string, code: string, suggestion: string): boolean {
  const row = draft.overrides.find((one) => one.key.trim() === key)
  if (row === undefined) return false
  const parameter = recipe.parameters.find((one) => one.name === suggestion)
  const value = readValue(row.text)
  if (code === 'shadows_parameter' && parameter !== undefined && isParameterValue(value)) {
    draft.overrides = draft.overrides.filter((one) => one !== row)
    setParam(draft, parameter, presetOf(recipe, draft.preset), value)
  } else {
    row.key = suggestion
  }
  return true
}

/** `params.clip_ratio` → `['params', 'clip_ratio']`; override keys keep their own dots. */
export function splitField(field: string): [string, string] {
  const dot = field.indexOf('.')
  return dot < 0 ? [field, ''] : [field.slice(0, dot), field.slice(dot + 1)]
}
