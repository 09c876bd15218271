/** What a dry run is about, as an address carries it from the launch form, through a reload, and back. */
import type { LocationQuery, LocationQueryRaw, RouteLocationRaw } from 'vue-router'

import { isRecord } from '@/api/json'

import { readTerms, writeTerms } from '../terms/terms'
import type { RewardTerm } from '../types'
import type { Sample } from './dryRun'

export const ROWS_UNASKED = 64

/** The rows of a dataset, and which column is what. */
export type Rows = Pick<Sample, 'dataset' | 'version' | 'split' | 'columns'>

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Role → column; empty where the address holds nothing that can be read. */
export function readColumns(text: unknown): Record<string, string> {
  if (typeof text !== 'string' || text === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    const isMap = isRecord(value) && Object.values(value).every((column) => typeof column === 'string')
    return isMap ? (value as Record<string, string>) : {}
  } catch (cause) {
    if (cause instanceof SyntaxError) return {}
    throw cause
  }
}

/** Rows and rewards, for the pages of dry runs and of the launch alike. */
export function queryOf({ dataset, version, split, columns }: Rows, rewards: readonly RewardTerm[]): LocationQueryRaw {
  return {
    dataset: dataset ?? undefined,
    version: version ?? undefined,
    split: split ?? undefined,
    columns: Object.keys(columns).length === 0 ? undefined : JSON.stringify(columns),
    rewards: rewards.length === 0 ? undefined : writeTerms(rewards),
  }
}

/** The way to a dry run of what a recipe would be trained with. */
export function dryRunLink(recipe: string, rows: Rows, rewards: readonly RewardTerm[]): RouteLocationRaw {
  return { name: 'rewards', query: { tab: 'dry-run', recipe, ...queryOf(rows, rewards) } }
}

/** What an address asks to be tried. */
export function readQuery(query: LocationQuery): { rewards: RewardTerm[]; sample: Sample } {
  const sample = {
    dataset: textOf(query.dataset),
    version: textOf(query.version),
    split: textOf(query.split),
    columns: readColumns(query.columns),
    rows: ROWS_UNASKED,
    job: textOf(query.job),
    step: null,
  }
  return { rewards: readTerms(query.rewards) ?? [], sample }
}
