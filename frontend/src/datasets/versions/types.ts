/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Version = Schemas['VersionRead']
export type VersionDetail = Schemas['VersionDetail']
export type Refs = Schemas['RefsRead']
export type Diff = Schemas['DiffRead']
export type DiffRow = Schemas['DiffRow']
export type DiffKind = Schemas['DiffRows']['kind']
export type Counts = Schemas['Counts']
export type ColumnChange = Schemas['ColumnChangeRead']
export type Statistics = Schemas['Statistics']
export type Lengths = Schemas['Lengths']
