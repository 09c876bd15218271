/** What of a draft goes along when another recipe is chosen, and what waits for the way back. */
import type { Parameter, Recipe } from '../types'
import { canBeEmpty, type Draft, type ParameterValue, type OverrideRow } from './draft'

/** Turns and engine settings that the current recipe has no place for; a recipe that has gets them back. */
export interface Parked {
  params: Record<string, ParameterValue>
  overrides: Partial<Record<Recipe['engine'], OverrideRow[]>>
}

export function emptyParked(): Parked {
  return { params: {}, overrides: {} }
}

/** Whether a parameter can hold a value that was given to another recipe's parameter of the same name. */
export function canHold(parameter: Parameter, value: ParameterValue): boolean {
  if (value === null) return canBeEmpty(parameter)
  if (Array.isArray(value)) return parameter.type === 'rewards'
  switch (parameter.type) {
    case 'int':
      return typeof value === 'number' && Number.isInteger(value) && isInRange(parameter, value)
    case 'float':
      return typeof value === 'number' && isInRange(parameter, value)
    case 'bool':
      return typeof value === 'boolean'
    case 'choice':
      return typeof value === 'string' && (parameter.choices ?? []).includes(value)
    case 'str':
      return typeof value === 'string'
    default:
      return false
  }
}

function isInRange(parameter: Parameter, value: number): boolean {
  const { minimum, maximum, exclusive_minimum: above } = parameter
  return (
    (minimum == null || value >= minimum) && (maximum == null || value <= maximum) && (above == null || value > above)
  )
}

/**
 * Moves a draft to another recipe.
 *
 * Parameters that both recipes have keep their turns where the value fits. What does not fit is parked, and comes back with
 * a recipe that can hold it. Engine settings belong to an engine, so they wait while the recipe is another engine's.
 */
export function carryOver(draft: Draft, parked: Parked, previous: Recipe | null, next: Recipe): Parked {
  const wanted = { ...parked.params, ...draft.params }
  const parameters = new Map(next.parameters.map((parameter) => [parameter.name, parameter]))
  const fits = ([name, value]: [string, ParameterValue]): boolean => {
    const parameter = parameters.get(name)
    return parameter !== undefined && canHold(parameter, value)
  }
  const overrides = { ...parked.overrides }
  if (previous !== null && previous.engine !== next.engine) {
    overrides[previous.engine] = draft.overrides
    draft.overrides = overrides[next.engine] ?? []
    overrides[next.engine] = []
  }
  draft.recipe = next.id
  draft.params = Object.fromEntries(Object.entries(wanted).filter(fits))
  return { params: Object.fromEntries(Object.entries(wanted).filter((entry) => !fits(entry))), overrides }
}
