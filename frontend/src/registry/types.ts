/** Names for the parts of the schema that this folder uses, and what follows from them. */
import type { components } from '@/api/schema'

export type NamedModel = components['schemas']['NamedModelRead']
export type NamedVersion = components['schemas']['NamedVersionRead']
export type Promotion = components['schemas']['PromotionRead']
export type GateResult = components['schemas']['GateResult']

/** What the API takes as a name, and as an alias: an alias begins with a letter. */
export const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const ALIAS = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/
/** Offered first; any other may be typed. */
export const USUAL_ALIASES = ['production', 'candidate'] as const

/** Aliases with their versions, in the order of their names. */
export function aliasesOf(named: NamedModel): { alias: string; version: number }[] {
  return Object.entries(named.aliases)
    .map(([alias, version]) => ({ alias, version }))
    .sort((one, other) => one.alias.localeCompare(other.alias))
}

/** Whether a rollback has somewhere to go: promotions make a stack, and a rollback takes the last one off. */
export function canRollBack(history: readonly Promotion[], alias: string): boolean {
  const stood: number[] = []
  for (const step of [...history].reverse().filter((each) => each.alias === alias)) {
    if (step.kind === 'rollback') while (stood.length > 0 && stood.at(-1) !== step.to_version) stood.pop()
    else if (stood.at(-1) !== step.to_version) stood.push(step.to_version)
  }
  return stood.length > 1
}
