/** Tricks that the rewards score while a run trains: which there are, and what to say where there are none. */
import type { components } from '@/api/schema'

type Probes = components['schemas']['ProbesRead']
type Split = components['schemas']['RolloutStep']['split']

/** Of the policy's own responses, and the tricks that are made of them. */
const TRICKS = ['rollouts', 'empty', 'truncated', 'repeated', 'format_only', 'wrong'] as const
export type Trick = (typeof TRICKS)[number]

/** Responses of probes are grouped by trick. */
export function trickOf(rollout: { split: Split; group: string }): Trick | null {
  return rollout.split === 'probe' ? (TRICKS.find((one) => one === rollout.group) ?? null) : null
}

/** The curve of a probe leads to the tricks. */
export function isOfProbe(key: string): boolean {
  return key.startsWith('probe/')
}

/** The splits to choose from: probes only where the run scores any, or where they are shown. */
export function splitsOf(shown: Split, probes: Probes | null): Split[] {
  const isProbed = shown === 'probe' || (probes !== null && probes.reason === null)
  return isProbed ? ['train', 'validation', 'probe'] : ['train', 'validation']
}

/** What to say of probes beside these responses, and the rewards that it is about. */
export function noteOf(shown: Split, probes: Probes | null): { key: string; names: string } | null {
  const names = probes?.left_out.join(', ') ?? ''
  if (shown === 'train' && probes?.reason != null) return { key: probes.reason, names }
  if (shown !== 'probe') return null
  return { key: names === '' ? 'what' : 'without', names }
}
