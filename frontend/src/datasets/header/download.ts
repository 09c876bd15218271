/** Files of a split, streamed by the platform: the browser saves them as they come. */

export const FORMS = ['jsonl', 'csv', 'parquet'] as const
export type FileForm = (typeof FORMS)[number]

export interface Download {
  dataset: string
  version: string | null
  split: string
  form: FileForm
}

export function downloadUrl({ dataset, version, split, form }: Download): string {
  const query = new URLSearchParams({ split, form, ...(version === null ? {} : { version }) })
  return `/api/v1/datasets/${encodeURIComponent(dataset)}/download?${query.toString()}`
}

/** The server names the file. */
export function download(wanted: Download): void {
  const link = document.createElement('a')
  link.href = downloadUrl(wanted)
  link.download = ''
  link.click()
}
