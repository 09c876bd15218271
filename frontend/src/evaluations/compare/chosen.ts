/** Which evaluations are compared: as the address names them, the baseline first. */
import type { LocationQuery } from 'vue-router'

export const LEAST_COMPARED = 2
export const MOST_COMPARED = 6

/** `?ids=ev_a,ev_b,ev_c`, each once; links from before have `?a=ev_a&b=ev_b`. */
export function readChosen(query: LocationQuery): string[] {
  const named = query.ids === undefined ? [query.a, query.b] : [query.ids]
  const texts = named.flat().filter((one): one is string => typeof one === 'string')
  return [
    ...new Set(
      texts
        .flatMap((text) => text.split(','))
        .map((id) => id.trim())
        .filter((id) => id !== ''),
    ),
  ]
}

export function writeChosen(ids: readonly string[]): { ids?: string } {
  return ids.length === 0 ? {} : { ids: ids.join(',') }
}

/** The same evaluations, each against another one. */
export function withBaseline(ids: readonly string[], baseline: string): string[] {
  return [baseline, ...ids.filter((id) => id !== baseline)]
}
