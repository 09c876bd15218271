/** Weighted rewards as a form edits them, and as an address carries them between pages. */
import { isRecord } from '@/api/json'

import type { RewardKind, RewardTerm } from '../types'

/** A new term asks for nothing that its kind would do anyway. */
export function newTerm(kind: RewardKind): RewardTerm {
  return { name: kind.name, weight: 1, options: {} }
}

export function moveTerm(terms: readonly RewardTerm[], from: number, to: number): RewardTerm[] {
  const next = [...terms]
  const [moved] = next.splice(from, 1)
  if (moved === undefined || to < 0 || to > next.length) return [...terms]
  next.splice(to, 0, moved)
  return next
}

/** Sets an option; the default is left out, so that it follows the platform's. */
export function setOption(term: RewardTerm, kind: RewardKind | undefined, name: string, value: unknown): RewardTerm {
  const option = kind?.options?.find((one) => one.name === name)
  const others = Object.entries(term.options ?? {}).filter(([key]) => key !== name)
  const isDefault = option !== undefined && option.default === value
  return { ...term, options: Object.fromEntries(isDefault ? others : [...others, [name, value]]) }
}

/** Kinds that can still be added: every one stands in a mixture once. */
export function freeKinds(kinds: readonly RewardKind[], terms: readonly RewardTerm[]): RewardKind[] {
  const used = new Set(terms.map((term) => term.name))
  return kinds.filter((kind) => !used.has(kind.name))
}

/** Lowest and highest sum that a mixture can give; null where a term is not bounded. */
export function mixtureRange(kinds: readonly RewardKind[], terms: readonly RewardTerm[]): [number, number] | null {
  let low = 0
  let high = 0
  for (const term of terms) {
    const kind = kinds.find((one) => one.name === term.name)
    if (kind?.lowest == null || kind.highest == null) return null
    const weight = term.weight ?? 1
    const ends = [kind.lowest * weight, kind.highest * weight]
    low += Math.min(...ends)
    high += Math.max(...ends)
  }
  return [low, high]
}

export function isTerm(value: unknown): value is RewardTerm {
  return (
    isRecord(value) &&
    typeof value.name === 'string' &&
    (value.weight === undefined || typeof value.weight === 'number') &&
    (value.options === undefined || isRecord(value.options))
  )
}

/** Terms from an address; null where it holds none that can be read. */
export function readTerms(text: unknown): RewardTerm[] | null {
  if (typeof text !== 'string' || text === '') return null
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) && value.length > 0 && value.every(isTerm) ? value : null
  } catch (cause) {
    if (cause instanceof SyntaxError) return null
    throw cause
  }
}

export function writeTerms(terms: readonly RewardTerm[]): string {
  return JSON.stringify(terms)
}
