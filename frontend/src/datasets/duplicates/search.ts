/** How duplicates are looked for: the operators that find them, and what each of them can be told. */
import type { PipelineStep } from '@/pipelines'

export const METHODS = ['exact', 'minhash', 'simhash'] as const
export type Method = (typeof METHODS)[number]
export const KEEPS = ['first', 'longest'] as const

export interface Search {
  method: Method
  /** Jaccard similarity, for minhash. */
  threshold: number
  /** Bits, for simhash. */
  distance: number
  keep: (typeof KEEPS)[number]
}

export const DEFAULT_SEARCH: Search = { method: 'minhash', threshold: 0.8, distance: 3, keep: 'first' }

const OPERATORS: Readonly<Record<Method, string>> = {
  exact: 'exact_duplicates',
  minhash: 'minhash_duplicates',
  simhash: 'simhash_duplicates',
}

export function stepOf(search: Search): PipelineStep {
  const { method, threshold, distance, keep } = search
  const own = method === 'minhash' ? { threshold } : method === 'simhash' ? { distance } : {}
  return { operator: OPERATORS[method], params: { ...own, keep } }
}

/** The search that a step was; null where it is none of these. */
export function searchOf(step: PipelineStep | undefined): Search | null {
  const method = METHODS.find((one) => OPERATORS[one] === step?.operator)
  if (step === undefined || method === undefined) return null
  const { threshold, distance, keep } = step.params ?? {}
  return {
    method,
    threshold: typeof threshold === 'number' ? threshold : DEFAULT_SEARCH.threshold,
    distance: typeof distance === 'number' ? distance : DEFAULT_SEARCH.distance,
    keep: keep === 'longest' ? 'longest' : 'first',
  }
}
