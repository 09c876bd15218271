/** The states of a job as the schema names them. */
import type { components } from '@/api/schema'

export type JobState = components['schemas']['JobState']
