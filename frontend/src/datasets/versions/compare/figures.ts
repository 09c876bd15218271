/** Statistics of two versions in figures that stand side by side. */
import type { Bin } from '@/charts/histogram'

import { meanOf as meanOfLengths, quantileOf as quantileOfLengths } from '../../statistics/lengths'
import type { Lengths, Statistics } from '../types'

/** A figure of both versions; null where a version has none. `name` is a key of the texts, `of` fills it in. */
export interface Figure {
  name: string
  of?: string
  before: number | null
  after: number | null
  /** Counts are whole; means and quantiles are not. */
  isCount: boolean
}

/** More columns, roles or languages than this are not told one by one. */
const MOST = 12

export function meanOf(lengths: Lengths | null | undefined): number | null {
  return lengths == null ? null : meanOfLengths(lengths)
}

/** About the length that this share of all stays below, to within a bin of the histogram. */
export function quantileOf(lengths: Lengths | null | undefined, share: number): number | null {
  return lengths == null ? null : quantileOfLengths(lengths, share)
}

type Values = (of: Statistics) => number | null

function figure(
  before: Statistics,
  after: Statistics,
  name: string,
  values: Values,
  isCount: boolean,
  of?: string,
): Figure {
  return { name, of, before: values(before), after: values(after), isCount }
}

/** The names that either side counts, the most frequent first. */
function namesOf(
  before: Readonly<Record<string, number>> | undefined,
  after: Readonly<Record<string, number>> | undefined,
): string[] {
  const sums = new Map<string, number>()
  for (const side of [before, after])
    for (const [name, count] of Object.entries(side ?? {})) sums.set(name, (sums.get(name) ?? 0) + count)
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST)
    .map(([name]) => name)
}

function missingIn(statistics: Statistics, column: string): number | null {
  const found = statistics.columns?.find((one) => one.name === column)
  return found === undefined ? null : (found.nulls ?? 0) + (found.empty ?? 0)
}

/** Every figure that at least one of the two has. */
export function figuresOf(before: Statistics, after: Statistics): Figure[] {
  const make = (name: string, values: Values, isCount = true, of?: string): Figure =>
    figure(before, after, name, values, isCount, of)
  const splits = namesOf(before.splits, after.splits)
  const columns = [...new Set([...(before.columns ?? []), ...(after.columns ?? [])].map((column) => column.name))]
    .filter((name) => (missingIn(before, name) ?? 0) + (missingIn(after, name) ?? 0) > 0)
    .slice(0, MOST)
  const all = [
    make('rows', (of) => of.rows),
    ...(splits.length > 1 ? splits.map((name) => make('splitRows', (of) => of.splits?.[name] ?? 0, true, name)) : []),
    make('duplicates', (of) => of.duplicates ?? null),
    make('meanCharacters', (of) => meanOf(of.characters), false),
    make('medianCharacters', (of) => quantileOf(of.characters, 0.5), false),
    make('mostCharacters', (of) => ((of.characters?.count ?? 0) === 0 ? null : (of.characters?.most ?? null))),
    make('meanTokens', (of) => meanOf(of.tokens), false),
    make('medianTokens', (of) => quantileOf(of.tokens, 0.5), false),
    make('mostTokens', (of) => of.tokens?.most ?? null),
    make('meanTurns', (of) => meanOf(of.turns), false),
    ...namesOf(before.roles, after.roles).map((name) => make('role', (of) => of.roles?.[name] ?? 0, true, name)),
    ...namesOf(before.languages, after.languages).map((name) =>
      make('language', (of) => of.languages?.[name] ?? 0, true, name),
    ),
    ...columns.map((name) => make('missing', (of) => missingIn(of, name), true, name)),
  ]
  return all.filter((one) => one.before !== null || one.after !== null)
}

/** Bars of both histograms over the same stretch, so that they can be compared by eye. */
export function sharedBins(before: Lengths | null | undefined, after: Lengths | null | undefined): [Bin[], Bin[]] {
  const sides = [before?.histogram, after?.histogram]
  const filled = sides.flatMap((side) => (side?.counts ?? []).flatMap((count, index) => (count > 0 ? [index] : [])))
  if (filled.length === 0) return [[], []]
  const [low, high] = [Math.min(...filled), Math.max(...filled)]
  const bins = (side: (typeof sides)[number]): Bin[] =>
    (side?.counts ?? [])
      .slice(low, high + 1)
      .map((count, index) => ({ from: side?.edges[low + index] ?? 0, to: side?.edges[low + index + 1] ?? 0, count }))
  return [bins(sides[0]), bins(sides[1])]
}
