/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type JobPipeline = Schemas['JobPipelineRead']
export type DocumentChecked = Schemas['JobPipelineChecked']
export type DocumentProblem = Schemas['DocumentProblem']
export type JobPipelineCreate = Schemas['JobPipelineCreate']
export type Stage = Schemas['StageRead']
export type StageCreate = Schemas['StageCreate']
export type StageState = Schemas['StageState']
export type Template = Schemas['JobPipelineTemplate']
export type TemplateStage = Schemas['TemplateStage']

/** Whether it moves without anybody asking. */
export function isUnderWay({ state }: Pick<JobPipeline, 'state'>): boolean {
  return state === 'running' || state === 'stopping'
}
