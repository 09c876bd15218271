/** The part of an address that a saved view holds. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

/** The values of these keys as a query string, in the order of the keys. */
export function pickQuery(query: LocationQuery, keys: readonly string[]): string {
  const picked = new URLSearchParams()
  for (const key of keys) {
    for (const value of [query[key]].flat()) {
      if (typeof value === 'string') picked.append(key, value)
    }
  }
  return picked.toString()
}

/** The address with these keys as the view has them; all other parts stay. */
export function applyQuery(current: LocationQuery, keys: readonly string[], view: string): LocationQueryRaw {
  const rest = Object.entries(current).filter(([key]) => !keys.includes(key))
  const saved = new URLSearchParams(view)
  // Keys that an older version of the page knew are left out.
  const found = keys.flatMap((key): [string, string | string[]][] => {
    const values = saved.getAll(key)
    const [first] = values
    return first === undefined ? [] : [[key, values.length === 1 ? first : values]]
  })
  return Object.fromEntries([...rest, ...found])
}
