/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Environment = Schemas['EnvironmentRead']
export type WorkflowListed = Schemas['WorkflowListed']
export type EnvironmentKind = Schemas['EnvironmentKindRead']
export type EnvironmentDataset = Schemas['EnvironmentDataset']
export type Tool = Schemas['ToolSchema']
export type ToolCall = Schemas['ToolCallRead']

/** Whether a worker still has something to do for it. */
export function isAwaited({ state }: Pick<Environment, 'state'>): boolean {
  return state === 'queued' || state === 'making'
}

export function isOver({ state }: Pick<ToolCall, 'state'>): boolean {
  return state === 'succeeded' || state === 'failed'
}
