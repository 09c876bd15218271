/** How a person wants rows to be read, of the training data and of the validation. */
import type { FieldIssue, IssueMap } from '@/ui/form/issues'

import type { DataFit, DataFormat, JobPreview } from '../../types'
import type { Draft } from '../draft'

const PARTS = ['training', 'validation'] as const

export type Part = (typeof PARTS)[number]

export interface Reading {
  /** Null leaves it to the platform. */
  format: DataFormat | null
  /** Role → column. */
  columns: Record<string, string>
}

const FIELDS: Readonly<Record<Part, { format: string; columns: string }>> = {
  training: { format: 'data_format', columns: 'columns' },
  validation: { format: 'validation_data_format', columns: 'validation_columns' },
}

export function readingOf(draft: Draft, part: Part): Reading {
  return part === 'training'
    ? { format: draft.dataFormat, columns: draft.columns }
    : { format: draft.validationFormat, columns: draft.validationColumns }
}

export function setReading(draft: Draft, part: Part, { format, columns }: Reading): void {
  if (part === 'training') Object.assign(draft, { dataFormat: format, columns })
  else Object.assign(draft, { validationFormat: format, validationColumns: columns })
}

/** Whether a person has said anything about it. */
export function isAsked({ format, columns }: Reading): boolean {
  return format !== null || Object.keys(columns).length > 0
}

export function isFieldOf(part: Part, field: string): boolean {
  const { format, columns } = FIELDS[part]
  return field === format || field === columns || field.startsWith(`${columns}.`)
}

/** What speaks against the reading. */
export function fieldsOf(part: Part, issues: IssueMap): FieldIssue[] {
  return [...issues].flatMap(([field, list]) => (isFieldOf(part, field) ? list : []))
}

export interface ShownFit {
  part: Part
  fit: DataFit
  reading: Reading
}

/**
 * What is worth showing of how the data suit: the validation has something of its own to say where it is another
 * dataset, is read in another way, or does not fit.
 */
export function shownFits(preview: JobPreview | null, draft: Draft): ShownFit[] {
  const fitOf = (part: Part): DataFit | null => (part === 'training' ? preview?.data : preview?.validation_data) ?? null
  const isSame = draft.validationDataset === null || draft.validationDataset === draft.dataset
  return PARTS.flatMap((part) => {
    const fit = fitOf(part)
    const reading = readingOf(draft, part)
    const isRepetition = part === 'validation' && isSame && fit?.fits === true && !isAsked(reading)
    return fit === null || isRepetition ? [] : [{ part, fit, reading }]
  })
}
