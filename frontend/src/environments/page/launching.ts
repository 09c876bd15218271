/** What a launch form is told when somebody trains on an environment. */
import type { Environment } from '../types'

/** Recipes that train in an environment of the kind; others are chosen by the person. */
const RECIPES: Readonly<Record<string, string>> = { linksearch: 'linksearch', maths: 'tune', own_tools: 'tune' }
/** Kinds whose rows, where they have some, are all that a training needs; its recipe by the name of the rows. */
const OF_ROWS: ReadonlySet<string> = new Set(['toolbox', 'own_tools'])
const ROW_RECIPES: Readonly<Record<string, string>> = { '': 'agent_grpo', sft: 'agent_sft', preference: 'agent_dpo' }

/** The main rows have no name of their own. */
export function mainRows({ datasets }: Pick<Environment, 'datasets'>) {
  return datasets.find((one) => one.name === '') ?? datasets[0] ?? null
}

export function launchQuery(
  environment: Pick<Environment, 'id' | 'kind' | 'datasets'>,
): Record<string, string | undefined> {
  const rows = mainRows(environment)
  const isOfRows = rows !== null && OF_ROWS.has(environment.kind)
  return {
    recipe: isOfRows ? ROW_RECIPES[rows.name] : RECIPES[environment.kind],
    environment: isOfRows ? undefined : environment.id,
    dataset: rows?.dataset.id ?? undefined,
    split: rows !== null && 'train' in rows.splits ? 'train' : undefined,
    validation: rows !== null && 'eval' in rows.splits ? 'eval' : undefined,
  }
}
