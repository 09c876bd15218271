/** Names for the parts of the schema that this folder uses, and what follows from them. */
import type { components } from '@/api/schema'

export type Model = components['schemas']['ModelRead']
export type ModelSource = Model['source']
export type ModelState = Model['state']
export type Lineage = components['schemas']['LineageRead']
export type LineageNode = components['schemas']['LineageNode']
export type LineageEdge = components['schemas']['LineageEdge']
export type ModelCreate = components['schemas']['ModelCreate']

/** Classifiers, like reward models, give numbers, and encoders vectors: these write no texts. */
const NO_WRITER = /(?:ForSequenceClassification|Model)$/

export function writesText({ architecture }: Pick<Model, 'architecture'>): boolean {
  return architecture === null || architecture.endsWith('LMHeadModel') || !NO_WRITER.test(architecture)
}

/** A worker still has to fetch the weights: the model changes without anybody asking. */
export function isAwaited(model: Model): boolean {
  return model.state === 'pending' || model.state === 'fetching'
}
