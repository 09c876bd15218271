/** A new evaluation while it is being put together. */
import type { Benchmark, EvaluationCreate, Order, Target } from '../types'
import { type MissingInScorer, missingInScorer, newScorer, type ScorerDraft, toScorer } from './scorer'

export type BenchmarkName = Order['benchmark']
export type Chat = Order['chat']
type Engine = NonNullable<EvaluationCreate['engine']>

/** One benchmark to run. Fields that its kind does not know are left out of the request. */
export interface OrderDraft {
  /** Tells the cards of a page apart. */
  key: number
  benchmark: BenchmarkName
  label: string
  limit: number | null
  shots: number | null
  chat: Chat
  system: string
  temperature: number
  topP: number
  maxTokens: number | null
  /** Of MATH; empty for all. */
  levels: number[]
  /** Types of MATH, subjects of MMLU; empty for all. */
  groups: string[]
  samples: number
  k: number[]
  timeoutS: number
  memoryMb: number
  mode: 'loglikelihood' | 'generate'
  dataset: string | null
  version: string | null
  split: string | null
  promptColumn: string | null
  answerColumn: string | null
  template: string
  groupColumn: string | null
  scorer: ScorerDraft
  task: string
}

export interface CheckpointChoice {
  job: string
  /** As it is called; its id where that is not known yet. */
  name: string
  step: number
}

export interface EngineDraft {
  maxModelLen: number | null
  dtype: Engine['dtype']
  tensorParallel: number
  gpuMemory: number
}

export interface EvaluationDraft {
  name: string
  models: string[]
  checkpoints: CheckpointChoice[]
  orders: OrderDraft[]
  engine: EngineDraft
  seed: number
  priority: number
}

export function newDraft(): EvaluationDraft {
  return {
    name: '',
    models: [],
    checkpoints: [],
    orders: [],
    engine: { maxModelLen: null, dtype: 'auto', tensorParallel: 1, gpuMemory: 0.85 },
    seed: 0,
    priority: 0,
  }
}

const ORDERABLE: readonly BenchmarkName[] = ['gsm8k', 'math', 'math500', 'humaneval', 'mmlu', 'custom', 'harness']

/** The benchmark of that name; null where the page has no form for it. */
export function orderable(name: string): BenchmarkName | null {
  return ORDERABLE.find((one) => one === name) ?? null
}

export function newOrder(benchmark: BenchmarkName, key: number): OrderDraft {
  return {
    key,
    benchmark,
    label: '',
    limit: null,
    shots: null,
    chat: 'auto',
    system: '',
    temperature: 0,
    topP: 1,
    maxTokens: null,
    levels: [],
    groups: [],
    samples: 1,
    k: [1],
    timeoutS: 5,
    memoryMb: 512,
    mode: 'loglikelihood',
    dataset: null,
    version: null,
    split: null,
    promptColumn: null,
    answerColumn: null,
    template: '',
    groupColumn: null,
    scorer: newScorer(),
    task: '',
  }
}

const TASK = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$/
const LABEL = /^[a-z0-9][a-z0-9_.-]{0,63}$/

export type Missing = MissingInScorer | 'label' | 'twice' | 'dataset' | 'task' | 'k' | 'greedy'

/** What has to be given, or given otherwise, before the benchmark can run; null where nothing. */
export function missingIn(order: OrderDraft, all: readonly OrderDraft[]): Missing | null {
  if (order.label !== '' && !LABEL.test(order.label)) return 'label'
  if (order.label !== '' && all.some((other) => other.key !== order.key && other.label === order.label)) return 'twice'
  if (order.benchmark === 'harness' && !TASK.test(order.task.trim())) return 'task'
  if (order.benchmark === 'humaneval' && (order.k.length === 0 || Math.max(...order.k) > order.samples)) return 'k'
  if (order.benchmark === 'humaneval' && order.samples > 1 && order.temperature === 0) return 'greedy'
  if (order.benchmark !== 'custom') return null
  return order.dataset === null ? 'dataset' : missingInScorer(order.scorer)
}

/** Codex's temperature for many samples (Chen et al. 2021): greedy ones would all be the same. */
const WARM = 0.8

/** Another number of programs for each problem; a k beyond it cannot be estimated. */
export function withSamples(order: OrderDraft, samples: number): Pick<OrderDraft, 'samples' | 'k' | 'temperature'> {
  const k = order.k.filter((one) => one <= samples)
  return {
    samples,
    k: k.length === 0 ? [1] : k,
    temperature: samples > 1 && order.temperature === 0 ? WARM : order.temperature,
  }
}

/** Whether the model writes an answer: only then there is something to sample. */
export function isGenerating(order: OrderDraft): boolean {
  return order.benchmark !== 'mmlu' || order.mode === 'generate'
}

function columnsOf(order: OrderDraft): Record<string, string> {
  const roles = { prompt: order.template === '' ? order.promptColumn : null, answer: order.answerColumn }
  return Object.fromEntries(Object.entries(roles).filter((entry): entry is [string, string] => entry[1] !== null))
}

function ownFields(order: OrderDraft): Record<string, unknown> {
  switch (order.benchmark) {
    case 'math':
    case 'math500':
      return {
        levels: order.levels.length === 0 ? null : [...order.levels].sort(),
        types: order.groups.length === 0 ? null : order.groups,
      }
    case 'humaneval':
      return {
        samples: order.samples,
        k: [...order.k].sort((a, b) => a - b),
        timeout_s: order.timeoutS,
        memory_mb: order.memoryMb,
      }
    case 'mmlu':
      return { mode: order.mode, subjects: order.groups.length === 0 ? null : order.groups }
    case 'custom':
      return {
        dataset: order.dataset,
        version: order.version,
        split: order.split,
        columns: columnsOf(order),
        template: order.template === '' ? null : order.template,
        group_column: order.groupColumn,
        scorer: toScorer(order.scorer),
      }
    case 'harness':
      return { task: order.task.trim() }
    default:
      return {}
  }
}

export function toOrder(order: OrderDraft): Order {
  return {
    benchmark: order.benchmark,
    label: order.label === '' ? null : order.label,
    limit: order.limit,
    shots: order.shots,
    chat: order.chat,
    system: order.chat === 'never' || order.system.trim() === '' ? null : order.system,
    decoding: isGenerating(order)
      ? { temperature: order.temperature, top_p: order.topP, max_tokens: order.maxTokens }
      : { temperature: 0, top_p: 1, max_tokens: null },
    ...ownFields(order),
  } as Order
}

export function toTargets(draft: EvaluationDraft): Target[] {
  return [
    ...draft.models.map((model): Target => ({ kind: 'model', model })),
    ...draft.checkpoints.map(({ job, step }): Target => ({ kind: 'checkpoint', job, step })),
  ]
}

/** Null while a target or a benchmark is missing, or one of the benchmarks is not complete. */
export function toRequest(draft: EvaluationDraft): EvaluationCreate | null {
  const targets = toTargets(draft)
  if (
    targets.length === 0 ||
    draft.orders.length === 0 ||
    draft.orders.some((order) => missingIn(order, draft.orders) !== null)
  )
    return null
  const { engine } = draft
  return {
    name: draft.name.trim() === '' ? null : draft.name.trim(),
    targets,
    benchmarks: draft.orders.map(toOrder),
    engine: {
      max_model_len: engine.maxModelLen,
      dtype: engine.dtype,
      tensor_parallel: engine.tensorParallel,
      gpu_memory: engine.gpuMemory,
    },
    seed: draft.seed,
    priority: draft.priority,
  }
}

/** How many of a benchmark's problems there are to measure on; null where that is not known. */
export function problemCount(benchmark: Benchmark): number | null {
  return benchmark.rows.test ?? null
}
