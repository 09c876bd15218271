/** The arguments of a call by hand, as a model would write them. */

/** Fields that were left empty are left out: a tool has defaults of its own. */
export function givenArguments(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ''),
  )
}
