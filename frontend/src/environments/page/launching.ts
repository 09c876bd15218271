/** What a launch form is told when somebody trains on an environment. */
import type { Environment } from '../types'

/** Recipes that train in an environment of the kind; others are chosen by the person. */
const RECIPES: Readonly<Record<string, string>> = { linksearch: 'linksearch', maths: 'tune', own_tools: 'tune', toolbox: 'agent_grpo' }
/** Of these the rows are all that a training needs. */
const OF_ROWS: ReadonlySet<string> = new Set(['toolbox'])

/** The main rows have no name of their own. */
export function mainRows({ datasets }: Pick<Environment, 'datasets'>) {
  return datasets.find((one) => one.name === '') ?? datasets[0] ?? null
}

export function launchQuery(environment: Pick<Environment, 'id' | 'kind' | 'datasets'>): Record<string, string | undefined> {
  const rows = mainRows(environment)
  return {
    recipe: RECIPES[environment.kind],
    environment: OF_ROWS.has(environment.kind) ? undefined : environment.id,
    dataset: rows?.dataset.id ?? undefined,
    split: rows !== null && 'train' in rows.splits ? 'train' : undefined,
    validation: rows !== null && 'eval' in rows.splits ? 'eval' : undefined,
  }
}
