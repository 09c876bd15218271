/** A generation while it is being set up. */
import { emptyOutput, type OutputDraft, toOutput } from '../editor/output'
import type { GenerationCreate } from '../types'

export const METHODS = ['self-instruct', 'rejection-sampling'] as const
export const CHECKS = ['exact', 'contains', 'numeric', 'judge'] as const

type Method = GenerationCreate['method']
type SelfInstruct = Extract<Method, { kind: 'self-instruct' }>
type RejectionSampling = Extract<Method, { kind: 'rejection-sampling' }>

export interface GenerationDraft {
  name: string
  method: (typeof METHODS)[number]
  /** `endpoint:<name>` or `model:<id>`. */
  source: string | null
  split: string | null
  rows: number
  maxRougeL: number
  samples: number
  check: (typeof CHECKS)[number]
  judge: string | null
  threshold: number
  keep: RejectionSampling['keep']
  temperature: number
  maxTokens: number
  maxCost: number
  system: string
  seed: number
  output: OutputDraft
}

export function newDraft(datasetName: string): GenerationDraft {
  return {
    name: '',
    method: 'self-instruct',
    source: null,
    split: null,
    rows: 100,
    maxRougeL: 0.7,
    samples: 4,
    check: 'numeric',
    judge: null,
    threshold: 1,
    keep: 'best',
    temperature: 0.7,
    maxTokens: 1024,
    maxCost: 1,
    system: '',
    seed: 0,
    output: emptyOutput('dataset', datasetName),
  }
}

/** What the platform fills in by itself where it is left out. */
type Given<T, K extends keyof T> = Pick<T, K>

function methodOf(
  draft: GenerationDraft,
):
  | Given<SelfInstruct, 'kind' | 'rows' | 'max_rouge_l'>
  | Given<RejectionSampling, 'kind' | 'samples' | 'check' | 'threshold' | 'keep'>
  | null {
  if (draft.method === 'self-instruct') return { kind: 'self-instruct', rows: draft.rows, max_rouge_l: draft.maxRougeL }
  const { check, judge } = draft
  if (check === 'judge' && judge === null) return null
  const checking: RejectionSampling['check'] =
    check === 'judge' ? { kind: 'judge', name: judge ?? '' } : { kind: check }
  return {
    kind: 'rejection-sampling',
    samples: draft.samples,
    check: checking,
    threshold: draft.threshold,
    keep: draft.keep,
  }
}

/** Null while something is missing. */
export function toGeneration(
  draft: GenerationDraft,
  dataset: string,
  version: string | null,
  fallbackName: string,
): GenerationCreate | null {
  const method = methodOf(draft)
  const output = toOutput(draft.output)
  if (method === null || output === null || draft.source === null || !(draft.maxCost > 0)) return null
  const at = draft.source.indexOf(':')
  const [kind, id] = [draft.source.slice(0, at), draft.source.slice(at + 1)]
  const request = {
    name: draft.name.trim() === '' ? fallbackName : draft.name.trim(),
    dataset,
    version,
    split: draft.split,
    endpoint: kind === 'endpoint' ? id : null,
    model: kind === 'model' ? id : null,
    method,
    sampling: { temperature: draft.temperature, top_p: 1, max_tokens: draft.maxTokens },
    system: draft.system.trim() === '' ? null : draft.system,
    max_cost: draft.maxCost,
    concurrency: 16,
    seed: draft.seed,
    output,
  }
  // Fields with a default are left to the platform; the schema's types ask for all of them.
  return request as GenerationCreate
}
