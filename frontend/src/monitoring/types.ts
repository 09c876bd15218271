/** Short names for the generated types of this domain. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type NodeSamples = Schemas['NodeSamples']
export type MachineHistory = Schemas['MachineHistory']
export type ProcessHistory = Schemas['ProcessHistory']
