/** What a dataset is called before a person names it, and what source a form describes. */
import { type Hub, newestOf } from '@/ui/form/hubs'

import type { ImportSource } from '../types'

const MAX_NAME = 120
/** Endings of files that hold rows, compressed or not. */
const ENDING = /\.(jsonl|ndjson|json|csv|tsv|parquet|arrow|feather|ipc)(\.(gz|zst|zip))?$/i

export const ACCEPTED = '.jsonl,.ndjson,.json,.csv,.tsv,.parquet,.arrow,.feather,.ipc,.gz,.zst,.zip'

/** sums.jsonl.gz is called sums. */
export function nameOfFile(filename: string): string {
  const stem = filename.replace(ENDING, '')
  const bare = stem === filename ? filename.replace(/\.[^.]+$/, '') : stem
  return (bare === '' ? filename : bare).slice(0, MAX_NAME)
}

export type SourceKind = ImportSource['kind']

/** The fields of the dialog for rows that are not on this computer. */
export interface SourceFields {
  path: string
  hub: Hub
  repo: string
  revision: string
  under: string
  url: string
}

export function emptyFields(): SourceFields {
  return { path: '', hub: 'huggingface', repo: '', revision: '', under: '', url: '' }
}

/** Null while a field that is needed is empty. */
export function sourceOf(kind: Exclude<SourceKind, 'upload'>, fields: SourceFields): ImportSource | null {
  const text = (value: string) => value.trim()
  switch (kind) {
    case 'path':
      return text(fields.path) === '' ? null : { kind, path: text(fields.path) }
    case 'hub':
      return text(fields.repo) === ''
        ? null
        : {
            kind,
            hub: fields.hub,
            repo_id: text(fields.repo),
            revision: text(fields.revision) || newestOf(fields.hub),
            under: text(fields.under),
          }
    case 's3':
      return /^s3:\/\/[^/\s]+/.test(text(fields.url)) ? { kind, url: text(fields.url) } : null
  }
}

/** The last part of where the rows are. */
export function nameOfSource(source: ImportSource | null): string {
  const last = (path: string) => path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  switch (source?.kind) {
    case 'path':
      return nameOfFile(last(source.path))
    case 'hub':
      return last(source.repo_id)
    case 's3':
      return nameOfFile(last(source.url))
    default:
      return ''
  }
}
