/** What a refusal says of a dataset that does not suit: what it lacks, and how else it could be read. */
import type { ApiError } from '@/api/errors'
import { isRecord } from '@/api/json'
import type { DataOffer, MissingRole } from '@/jobs'

export interface Remedies {
  missing: MissingRole[]
  offers: DataOffer[]
}

function isText(value: unknown): value is { en: string; zh: string } {
  return isRecord(value) && typeof value.en === 'string' && typeof value.zh === 'string'
}

function isMissing(value: unknown): value is MissingRole {
  return isRecord(value) && typeof value.role === 'string' && isText(value.reason)
}

function isOffer(value: unknown): value is DataOffer {
  return isRecord(value) && typeof value.format === 'string' && isRecord(value.columns) && isText(value.label)
}

function listOf<T>(value: unknown, isOne: (item: unknown) => item is T): T[] {
  return Array.isArray(value) ? value.filter(isOne) : []
}

/** Null where the refusal is about something else. */
export function remediesOf(error: ApiError | null): Remedies | null {
  const items = error?.code === 'unsuitable_dataset' ? listOf(error.details.items, isRecord) : []
  const missing = items.flatMap((item) => listOf(item.missing, isMissing))
  const offers = items.flatMap((item) => listOf(item.offers, isOffer))
  return missing.length + offers.length === 0 ? null : { missing, offers }
}
