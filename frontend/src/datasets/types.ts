/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Dataset = Schemas['DatasetRead']
export type DatasetState = Schemas['DatasetState']
export type DatasetRows = Schemas['DatasetRows']
export type Row = DatasetRows['rows'][number]
export type CutValue = Schemas['CutValue']
export type Column = Dataset['columns'][number]
export type DataTask = Schemas['DataTaskRead']
export type TaskProgressRead = Schemas['DataTaskProgress']
export type ImportSource = Schemas['ImportCreate']['source']
export type Mixed = Schemas['ImportCreate']['mixed']
export type ImportMode = Schemas['ImportMore']['mode']
export type Condition = Schemas['Condition']
export type FoundRows = Schemas['FoundRows']
export type Statistics = Schemas['Statistics']
export type Lengths = Schemas['Lengths']
export type VersionDetail = Schemas['VersionDetail']
export type Refs = Schemas['RefsRead']
export type QuarantinedRow = Schemas['QuarantinedRow']

/** What a version holds, as far as its rows are to be read. */
export type RowLayout = Pick<Dataset, 'format' | 'format_columns'>
