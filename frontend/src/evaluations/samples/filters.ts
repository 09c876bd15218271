/** Which samples are shown, and which of them is open, as the address bar keeps it. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import { type Change, CHANGES, type Verdict, VERDICTS } from '../types'

export interface SampleFilters {
  verdicts: Verdict[]
  /** Kind and name of a group; both or none. */
  group: { kind: string; name: string } | null
  search: string
  /** Another evaluation, whose answers stand beside these. */
  against: string | null
  /** Only problems on which the two differ; null for all. */
  changed: Change | null
}

export interface SamplePlace {
  position: number
  number: number
}

export const NO_FILTERS: SampleFilters = { verdicts: [], group: null, search: '', against: null, changed: null }

function single(value: LocationQuery[string] | undefined): string | null {
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first === null || first === '' ? null : first
}

/** Reads the filters; what the browser does not know is left out. */
export function readFilters(query: LocationQuery): SampleFilters {
  const asked = [query.verdict].flat()
  const [kind, name, against] = [single(query.kind), single(query.group), single(query.against)]
  return {
    verdicts: VERDICTS.filter((verdict) => asked.includes(verdict)),
    group: kind === null || name === null ? null : { kind, name },
    search: single(query.search) ?? '',
    against,
    changed: against === null ? null : (CHANGES.find((one) => one === single(query.changed)) ?? null),
  }
}

/** The shortest query that says the same: no empty filters. */
export function writeFilters(filters: SampleFilters): LocationQueryRaw {
  const query: LocationQueryRaw = {}
  if (filters.verdicts.length > 0) query.verdict = filters.verdicts
  if (filters.group !== null) Object.assign(query, { kind: filters.group.kind, group: filters.group.name })
  if (filters.search !== '') query.search = filters.search
  if (filters.against !== null) query.against = filters.against
  if (filters.against !== null && filters.changed !== null) query.changed = filters.changed
  return query
}

/** Whether anything is left out; another evaluation beside this one leaves nothing out. */
export function isNarrowed(filters: SampleFilters): boolean {
  return Object.keys(writeFilters({ ...filters, against: null, changed: null })).length > 0 || filters.changed !== null
}

/** "12.0": the thirteenth problem's first generation. */
export function readPlace(query: LocationQuery): SamplePlace | null {
  const match = /^(\d{1,12})\.(\d{1,6})$/.exec(single(query.at) ?? '')
  return match === null ? null : { position: Number(match[1]), number: Number(match[2]) }
}

export function writePlace(place: SamplePlace): string {
  return `${place.position}.${place.number}`
}
