/** Files of a split, streamed by the platform: the browser saves them as they come. */
import type { DropdownOption } from 'naive-ui'

import { fetchFile } from '@/api/fetchFile'

export const FORMS = ['jsonl', 'csv', 'parquet'] as const
export type FileForm = (typeof FORMS)[number]

export interface Download {
  dataset: string
  version: string | null
  split: string
  form: FileForm
}

/** Kinds of files of each split; a single split needs no second choice. Keys are read by `chosen`. */
export function choices(
  splits: Readonly<Record<string, number>>,
  formText: (form: FileForm) => string,
  splitText: (name: string, rows: number) => string,
): DropdownOption[] {
  const forms = (split: string): DropdownOption[] =>
    FORMS.map((form) => ({ key: `${form}:${split}`, label: formText(form) }))
  const all = Object.entries(splits)
  const [only] = all
  if (all.length === 1 && only !== undefined) return forms(only[0])
  return all.map(([split, rows]) => ({ key: split, label: splitText(split, rows), children: forms(split) }))
}

export function chosen(key: string): Pick<Download, 'form' | 'split'> {
  const [form, ...split] = key.split(':')
  return { form: form as FileForm, split: split.join(':') }
}

export function downloadUrl({ dataset, version, split, form }: Download): string {
  const query = new URLSearchParams({ split, form, ...(version === null ? {} : { version }) })
  return `/api/v1/datasets/${encodeURIComponent(dataset)}/download?${query.toString()}`
}

export function download(wanted: Download): void {
  fetchFile(downloadUrl(wanted))
}
