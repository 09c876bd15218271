/** What of a draft goes along when another recipe is chosen, and what waits for the way back. */
import type { Knob, Recipe } from '../types'
import { canBeEmpty, type Draft, type KnobValue, type OverrideRow } from './draft'

/** Turns and engine settings that the current recipe has no place for; a recipe that has gets them back. */
export interface Parked {
  params: Record<string, KnobValue>
  overrides: Partial<Record<Recipe['engine'], OverrideRow[]>>
}

export function emptyParked(): Parked {
  return { params: {}, overrides: {} }
}

/** Whether a knob can hold a value that was given to another recipe's knob of the same name. */
export function canHold(knob: Knob, value: KnobValue): boolean {
  if (value === null) return canBeEmpty(knob)
  if (Array.isArray(value)) return knob.type === 'rewards'
  switch (knob.type) {
    case 'int':
      return typeof value === 'number' && Number.isInteger(value) && isInRange(knob, value)
    case 'float':
      return typeof value === 'number' && isInRange(knob, value)
    case 'bool':
      return typeof value === 'boolean'
    case 'choice':
      return typeof value === 'string' && (knob.choices ?? []).includes(value)
    case 'str':
      return typeof value === 'string'
    default:
      return false
  }
}

function isInRange(knob: Knob, value: number): boolean {
  const { minimum, maximum, exclusive_minimum: above } = knob
  return (minimum == null || value >= minimum) && (maximum == null || value <= maximum) && (above == null || value > above)
}

/**
 * Moves a draft to another recipe.
 *
 * Knobs that both recipes have keep their turns where the value fits. What does not fit is parked, and comes back with
 * a recipe that can hold it. Engine settings belong to an engine, so they wait while the recipe is another engine's.
 */
export function carryOver(draft: Draft, parked: Parked, previous: Recipe | null, next: Recipe): Parked {
  const wanted = { ...parked.params, ...draft.params }
  const knobs = new Map(next.knobs.map((knob) => [knob.name, knob]))
  const fits = ([name, value]: [string, KnobValue]): boolean => {
    const knob = knobs.get(name)
    return knob !== undefined && canHold(knob, value)
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
