/** What is recorded of where a version came from; versions of other times may have recorded less. */
import { isRecord } from '@/api/json'

export interface Provenance {
  address: string | null
  files: { name: string; sha256: string; size: number }[]
  inputs: string[]
  pipeline: string | null
  pipelineHash: string | null
  /** Whatever else is known. */
  notes: Readonly<Record<string, unknown>>
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)
const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])

export function readProvenance(recorded: Readonly<Record<string, unknown>>): Provenance {
  return {
    address: text(recorded.address),
    files: list(recorded.files).flatMap((file) => {
      if (!isRecord(file) || typeof file.name !== 'string') return []
      return [
        {
          name: file.name,
          sha256: text(file.sha256) ?? '',
          size: typeof file.size_bytes === 'number' ? file.size_bytes : 0,
        },
      ]
    }),
    inputs: list(recorded.inputs).filter((one): one is string => typeof one === 'string'),
    pipeline: text(recorded.pipeline),
    pipelineHash: text(recorded.pipeline_hash),
    notes: isRecord(recorded.notes) ? recorded.notes : {},
  }
}
