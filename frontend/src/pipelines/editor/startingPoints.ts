/** Pipelines to begin with, made of operators; every step can be changed. */
import { type DraftStep, newStep } from './draft'

export const STARTING_POINTS = ['clean', 'deduplicate', 'score'] as const
export type StartingPoint = (typeof STARTING_POINTS)[number]

const STEPS: Readonly<
  Record<StartingPoint, readonly [operator: string, params?: Readonly<Record<string, unknown>>][]>
> = {
  clean: [
    ['normalise_text'],
    ['control_characters'],
    ['html'],
    ['personal_data'],
    ['empty_answers'],
    ['length', { where: 'answer', unit: 'characters', minimum: 2, maximum: 20_000 }],
    ['repetition', { where: 'answer' }],
  ],
  deduplicate: [['normalise_text'], ['exact_duplicates'], ['minhash_duplicates', { keep: 'longest' }]],
  score: [['quality'], ['filter_by_score', { best_share: 0.8 }]],
}

/** Operators that this platform does not have are left out. */
export function startingSteps(name: StartingPoint, known: ReadonlySet<string>): DraftStep[] {
  return STEPS[name].filter(([operator]) => known.has(operator)).map(([operator, params]) => newStep(operator, params))
}
