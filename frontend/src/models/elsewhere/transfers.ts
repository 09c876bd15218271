/** Names for the parts of the schema that this folder uses, and how a transfer is said. */
import type { components } from '@/api/schema'

export type Transfer = components['schemas']['TransferRead']

/** owner/name, as the API takes it. */
export const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/
/** A branch. */
export const REVISION = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,119}$/

/** Where it goes: the repository and branch, or the kind of file. */
export function targetOf({ kind, request, result }: Transfer): string {
  if (kind === 'gguf') return result?.file ?? `GGUF ${String(request.type)}`
  const [repository, revision] = [String(request.repo_id), String(request.revision)]
  if (request.hub === 'modelscope') return `ModelScope: ${repository}`
  return revision === 'main' ? repository : `${repository} @ ${revision}`
}

/** A link that is safe to follow: of a push that is done. */
export function pageOf({ result }: Transfer): string | null {
  const url = result?.url ?? ''
  return /^https?:\/\//.test(url) ? url : null
}

/** How far it is; null where that is not known. */
export function fractionOf({ progress }: Transfer): number | null {
  return progress?.total_bytes ? progress.done_bytes / progress.total_bytes : null
}

export function transferFile(id: string): string {
  return `/api/v1/transfers/${encodeURIComponent(id)}/file`
}
