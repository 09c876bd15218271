/** Names for the parts of the schema that this folder uses. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type RewardTerm = Schemas['RewardTerm']
export type RewardKind = Schemas['RewardKindRead']
export type RewardOption = Schemas['RewardOption']
export type RewardFile = Schemas['RewardFileRead']
export type RewardFilePage = Schemas['Page_RewardFileRead_']
export type DryRun = Schemas['DryRunRead']
export type DryRunResult = Schemas['DryRunResult']
export type ProbeResult = Schemas['ProbeResult']
