/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Operator = Schemas['OperatorRead']
export type OperatorGroup = Operator['group']
export type Pipeline = Schemas['Pipeline']
export type PipelineStep = Schemas['Step']
export type PipelineProblem = Schemas['PipelineProblemRead']
export type PipelineChecked = Schemas['PipelineChecked']
export type SavedPipeline = Schemas['PipelineRead']
export type PipelineVersion = Schemas['PipelineVersionRead']
export type Run = Schemas['RunRead']
export type RunReport = Schemas['RunReportRead']
export type RunStep = Schemas['RunStepRead']
export type RunCreate = Schemas['RunCreate']
export type RunOutput = NonNullable<RunCreate['output']>
export type Purpose = RunCreate['purpose']
export type Cluster = Schemas['Cluster']
export type DroppedRow = Schemas['DroppedRow']
export type DataTask = Schemas['DataTaskRead']
export type GenerationCreate = Schemas['GenerationCreate']
export type GenerationEndpoint = Schemas['GenerationEndpoint']
export type DatasetVersion = Schemas['VersionRead']
export type StepCounts = Pick<RunStep, 'name' | 'operator' | 'kept' | 'changed' | 'dropped' | 'rows_in'>

/** The order in which a person would use operators. */
export const GROUPS: readonly OperatorGroup[] = ['clean', 'deduplicate', 'score', 'filter', 'convert', 'split']

export type Row = Readonly<Record<string, unknown>>

/** What a step did to a row of a preview. */
export interface PreviewRow {
  position: number
  state: 'kept' | 'changed' | 'dropped'
  reason: string | null
  before: Row
  after: Row[]
}

export interface PreviewStep {
  report: StepCounts & { reasons?: Readonly<Record<string, number>>; counts?: Readonly<Record<string, number>> }
  rows: PreviewRow[]
}

/** Result of a task of kind preview. */
export interface Preview {
  rows_in: number
  rows_out: number
  /** Null where rows were not searched for. */
  rows_searched?: number | null
  rows_touched?: number | null
  steps: PreviewStep[]
}
