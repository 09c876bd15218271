/** What the texts of a form may be: columns of the dataset, judges, further inputs. */
import type { Param } from '@/ui/schema/schema'

export interface Suggestions {
  columns: readonly string[]
  judges: readonly string[]
  /** Names of datasets, and names that stand for some already. */
  resources: readonly string[]
}

export const NO_SUGGESTIONS: Suggestions = { columns: [], judges: [], resources: [] }

/** Parameters that name columns which are there already; those that write a new one are not here. */
const COLUMNS = new Set(['columns', 'score_column', 'vector_column', 'by', 'attempts', 'judge', 'score'])

/** Parameters that name further inputs: benchmarks to stay clear of, lists of words. */
export const RESOURCE_PARAMS: readonly string[] = ['benchmarks', 'files']

export function suggestionsFor(param: Param, suggestions: Suggestions): readonly string[] {
  if (param.name === 'scorer') return suggestions.judges
  if (RESOURCE_PARAMS.includes(param.name)) return suggestions.resources
  return COLUMNS.has(param.name) ? suggestions.columns : []
}
