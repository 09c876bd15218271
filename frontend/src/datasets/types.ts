/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

export type Dataset = components['schemas']['DatasetRead']
export type DatasetRows = components['schemas']['DatasetRows']
export type Row = DatasetRows['rows'][number]
export type Column = Dataset['columns'][number]
