/** How answers to rows of a dataset are scored, while it is being set up. */
import type { Order } from '../types'

type Scorer = Extract<Order, { benchmark: 'custom' }>['scorer']
export type ScorerKind = Scorer['kind']

/** From the plain to the costly. */
export const SCORER_KINDS = [
  'exact',
  'contains',
  'regex',
  'numeric',
  'math',
  'choice',
  'json',
  'bleu',
  'rouge1',
  'rouge2',
  'rougeL',
  'tool_use',
  'judge',
  'file',
] as const satisfies readonly ScorerKind[]

/** The fields of all kinds: changing the kind and coming back loses nothing. */
export interface ScorerDraft {
  kind: ScorerKind
  ignoreCase: boolean
  pattern: string
  tolerance: number
  schemaText: string
  equalsAnswer: boolean
  choicesColumn: string | null
  threshold: number
  judge: string | null
  form: 'rubric' | 'pairwise'
  rubric: string
  maxCost: number
  humanColumn: string | null
  file: string | null
}

export function newScorer(): ScorerDraft {
  return {
    kind: 'exact',
    ignoreCase: false,
    pattern: '',
    tolerance: 0,
    schemaText: '',
    equalsAnswer: true,
    choicesColumn: null,
    threshold: 0.5,
    judge: null,
    form: 'rubric',
    rubric: '',
    maxCost: 1,
    humanColumn: null,
    file: null,
  }
}

export type MissingInScorer = 'pattern' | 'choices' | 'json' | 'judge' | 'rubric' | 'file'

/** What has to be given before the scorer can be used. */
export function missingInScorer(draft: ScorerDraft): MissingInScorer | null {
  switch (draft.kind) {
    case 'regex':
      return draft.pattern === '' ? 'pattern' : null
    case 'choice':
      return draft.choicesColumn === null ? 'choices' : null
    case 'json':
      return draft.schemaText.trim() === '' && !draft.equalsAnswer ? 'json' : null
    case 'judge':
      if (draft.judge === null) return 'judge'
      return draft.form === 'rubric' && draft.rubric.trim() === '' ? 'rubric' : null
    case 'file':
      return draft.file === null ? 'file' : null
    default:
      return null
  }
}

/** Only what the kind knows: the API takes nothing else. */
export function toScorer(draft: ScorerDraft): Scorer {
  switch (draft.kind) {
    case 'exact':
    case 'contains':
      return { kind: draft.kind, ignore_case: draft.ignoreCase }
    case 'regex':
      return { kind: 'regex', pattern: draft.pattern }
    case 'numeric':
      return { kind: 'numeric', tolerance: draft.tolerance }
    case 'math':
      return { kind: 'math' }
    case 'tool_use':
      return { kind: 'tool_use' }
    case 'choice':
      return { kind: 'choice', choices_column: draft.choicesColumn ?? '' }
    case 'json':
      return {
        kind: 'json',
        schema_text: draft.schemaText.trim() === '' ? null : draft.schemaText,
        equals_answer: draft.equalsAnswer,
      }
    case 'judge':
      return {
        kind: 'judge',
        judge: draft.judge ?? '',
        form: draft.form,
        rubric: draft.rubric,
        threshold: draft.threshold,
        max_cost: draft.maxCost,
        human_column: draft.humanColumn,
      }
    case 'file':
      return { kind: 'file', file: draft.file ?? '', threshold: draft.threshold }
    default:
      return { kind: draft.kind, threshold: draft.threshold }
  }
}
