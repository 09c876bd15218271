/** The states of everything that has one, each with its mark: a shape and a colour, so that colour alone never carries it. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type JobState = Schemas['JobState']
export type State =
  | JobState
  | Schemas['DatasetState']
  | Schemas['ModelState']
  | Schemas['ReportState']
  | Schemas['DataTaskRead']['state']
  | Schemas['EnvironmentState']
  | Schemas['StageState']
  | Schemas['PipelineState']
  | Schemas['EndpointState']
  | Schemas['SweepState']
  | Schemas['RunState']

type Shape = 'waiting' | 'diamond' | 'dot' | 'hollow' | 'square' | 'check' | 'cross' | 'bolt' | 'arrow'

export interface Mark {
  shape: Shape
  /** A custom property of the theme. */
  tone: JobState
}

export const MARKS: Readonly<Record<State, Mark>> = {
  queued: { shape: 'waiting', tone: 'queued' },
  pending: { shape: 'waiting', tone: 'queued' },
  starting: { shape: 'diamond', tone: 'launching' },
  creating: { shape: 'waiting', tone: 'running' },
  fetching: { shape: 'arrow', tone: 'running' },
  writing: { shape: 'dot', tone: 'running' },
  making: { shape: 'dot', tone: 'running' },
  waiting: { shape: 'waiting', tone: 'queued' },
  idle: { shape: 'waiting', tone: 'stopped' },
  skipped: { shape: 'arrow', tone: 'succeeded' },
  blocked: { shape: 'hollow', tone: 'stopped' },
  launching: { shape: 'diamond', tone: 'launching' },
  running: { shape: 'dot', tone: 'running' },
  stopping: { shape: 'hollow', tone: 'stopping' },
  stopped: { shape: 'square', tone: 'stopped' },
  cancelled: { shape: 'square', tone: 'stopped' },
  succeeded: { shape: 'check', tone: 'succeeded' },
  ready: { shape: 'check', tone: 'succeeded' },
  pruned: { shape: 'arrow', tone: 'stopping' },
  deleted: { shape: 'diamond', tone: 'stopped' },
  refused: { shape: 'bolt', tone: 'failed' },
  failed: { shape: 'cross', tone: 'failed' },
  crashed: { shape: 'bolt', tone: 'crashed' },
}

interface Path {
  d: string
  isFilled?: boolean
  isDashed?: boolean
}

const CIRCLE = 'M2 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z'
const SQUARE = 'M2 2h8v8H2Z'

/** On a grid of 12 units. */
export const SHAPES: Readonly<Record<Shape, Path>> = {
  waiting: { d: CIRCLE, isDashed: true },
  diamond: { d: 'M6 1.5 10.5 6 6 10.5 1.5 6Z' },
  dot: { d: CIRCLE, isFilled: true },
  hollow: { d: SQUARE },
  square: { d: SQUARE, isFilled: true },
  check: { d: 'M1.8 6.4 4.8 9.4 10.2 2.8' },
  cross: { d: 'M2.4 2.4l7.2 7.2M9.6 2.4 2.4 9.6' },
  bolt: { d: 'M6.8 0.8 2.6 6.8h2.6L4.6 11.2 9.4 5H6.6Z', isFilled: true },
  arrow: { d: 'M6 1v9M2.5 6.5 6 10l3.5-3.5' },
}

/** Keys of the words for a state, by whose it is. */
export const WORDS = {
  job: (state: State) => `state.${state}`,
  dataset: (state: State) => `datasets.state.${state}`,
  model: (state: State) => `models.state.${state}`,
  report: (state: State) => `reports.state.${state}`,
  endpoint: (state: State) => `playground.state.${state}`,
  environment: (state: State) => `environments.state.${state}`,
  sweep: (state: State) => `sweeps.state.${state}`,
  stage: (state: State) => `jobPipelines.state.${state}`,
} as const
