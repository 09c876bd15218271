/** Short names for the generated types of this domain. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Report = Schemas['ReportRead']
export type ReportCreate = Schemas['ReportCreate']
export type ReportFormat = Report['formats'][number]

/** In the order in which they are offered. */
export const FORMATS = ['pdf', 'html', 'md'] as const satisfies readonly ReportFormat[]
export const LANGUAGES = ['en', 'zh'] as const satisfies readonly Report['language'][]

/** A worker still writes its files: it changes without anybody asking. */
export function isAwaited(report: Report): boolean {
  return report.state === 'pending' || report.state === 'writing'
}

/** Where a file of it lies; the server names the file. */
export function fileUrl(report: Report, format: ReportFormat): string {
  return `/api/v1/reports/${encodeURIComponent(report.id)}/file?format=${format}`
}
