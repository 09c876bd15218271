/** Columns that steps write, so that later steps can be pointed at them. */
import type { DraftStep } from './draft'

const QUALITY_PARTS = ['total', 'length', 'diversity', 'repetition', 'relevance', 'format']

function text(value: unknown, fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback
}

function writtenBy(step: DraftStep): string[] {
  switch (step.operator) {
    case 'quality': {
      const column = text(step.params.column, 'quality')
      return QUALITY_PARTS.map((part) => `${column}.${part}`)
    }
    case 'judge':
      return [text(step.params.column, 'judge')]
    case 'difficulty':
      return [text(step.params.column, 'difficulty')]
    case 'language':
      return typeof step.params.column === 'string' ? [step.params.column] : []
    default:
      return []
  }
}

export function writtenColumns(steps: readonly DraftStep[]): string[] {
  return steps.flatMap(writtenBy)
}
