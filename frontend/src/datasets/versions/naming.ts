/** How versions are called, found and kept. */
import type { Refs, Version, VersionDetail } from './types'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
/** Fewer digits of an id may mean several versions. */
const FEWEST_DIGITS = 8

export const MAIN = 'main'

/** Whether a branch or tag can be called so. */
export function isName(text: string): boolean {
  return NAME.test(text)
}

/** The id that a branch, tag or the beginning of an id stands for, among the versions that are known. */
export function findVersion(
  revision: string,
  refs: Refs | null,
  versions: readonly Pick<Version, 'id'>[],
): string | null {
  const named = [...(refs?.branches ?? []), ...(refs?.tags ?? [])].find((ref) => ref.name === revision)
  if (named !== undefined) return named.version
  if (revision.length < FEWEST_DIGITS) return null
  const found = versions.filter((version) => version.id.startsWith(revision))
  return found.length === 1 ? (found[0]?.id ?? null) : null
}

export type Blocker =
  { kind: 'branch' | 'tag'; name: string } | { kind: 'child'; number: number } | { kind: 'use'; name: string }

/** What keeps a version from being deleted, as far as this page knows; the API knows all. */
export function blockersOf(detail: VersionDetail, known: readonly Version[]): Blocker[] {
  return [
    ...detail.branches.map((name): Blocker => ({ kind: 'branch', name })),
    ...detail.tags.map((name): Blocker => ({ kind: 'tag', name })),
    ...known
      .filter((one) => one.parents.includes(detail.id))
      .map((one): Blocker => ({ kind: 'child', number: one.number })),
    ...detail.uses
      .filter((use) => use.is_unfinished)
      .map((use): Blocker => ({ kind: 'use', name: use.name ?? use.id })),
  ]
}
