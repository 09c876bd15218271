/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

export type Model = components['schemas']['ModelRead']
export type ModelSource = Model['source']
export type ModelState = Model['state']
export type ModelCreate = components['schemas']['ModelCreate']
