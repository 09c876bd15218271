/** Short names for the generated types of this domain. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Job = Schemas['JobRead']
export type JobCreate = Schemas['JobCreate']
export type JobUpdate = Schemas['JobUpdate']
export type JobKind = Job['kind']
export type JobState = Schemas['JobState']
export type JobPreview = Schemas['JobPreview']
export type ImportedScript = Schemas['ImportedScript']
export type Issue = Schemas['Issue']
export type Recipe = Schemas['Recipe']
export type Parameter = Schemas['Parameter']
export type ParameterChange = Schemas['ParameterChange']
export type Preset = Schemas['Preset']
export type StepClock = Schemas['StepClock']
export type MetricSeries = Schemas['MetricSeries']
export type LogLine = Schemas['LogLineRead']
export type Checkpoint = Schemas['CheckpointRead']
export type BestCheckpoint = Schemas['BestCheckpoint']
export type Rollout = Schemas['RolloutRead']
export type RolloutStep = Schemas['RolloutStep']
export type RolloutSummary = Schemas['RolloutSummary']
export type RolloutGroupRead = Schemas['RolloutGroupRead']
export type RolloutGroupTotals = Schemas['RolloutGroupTotals']
export type TokenTrace = Schemas['TokenTraceRead']
export type PromptMap = Schemas['PromptMap']
export type Manifest = Schemas['ManifestRead']
export type Alarm = Schemas['AlarmRead']
export type DataFormat = Schemas['DataFormat']
export type DataFit = Schemas['DataFit']
export type DataOffer = Schemas['DataOffer']
export type MissingRole = Schemas['MissingRole']
export type MemoryEstimate = Schemas['MemoryEstimate']
export type StreamEvents = Schemas['StreamEvents']

export const JOB_STATES = [
  'queued',
  'launching',
  'running',
  'stopping',
  'stopped',
  'succeeded',
  'failed',
  'crashed',
] as const satisfies readonly JobState[]

export const JOB_KINDS = ['train', 'export', 'evaluate', 'serve'] as const satisfies readonly JobKind[]

const ACTIVE: ReadonlySet<JobState> = new Set<JobState>(['queued', 'launching', 'running', 'stopping'])

/** States from which a job still moves without anybody asking. */
export function isActive(state: JobState): boolean {
  return ACTIVE.has(state)
}
