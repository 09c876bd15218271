/** What is to become of the rows of a run. */
import type { RunOutput } from '../types'

export interface OutputDraft {
  kind: RunOutput['kind']
  branch: string
  message: string
  /** Of a new dataset. */
  name: string
}

export function emptyOutput(kind: OutputDraft['kind'], name = ''): OutputDraft {
  return { kind, branch: 'main', message: '', name }
}

const BRANCH = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/** Null while something is missing. */
export function toOutput(draft: OutputDraft): RunOutput | null {
  if (draft.kind === 'none') return { kind: 'none' }
  if (draft.kind === 'dataset') {
    const name = draft.name.trim()
    return name === '' ? null : { kind: 'dataset', name, description: '' }
  }
  const branch = draft.branch.trim() === '' ? 'main' : draft.branch.trim()
  return BRANCH.test(branch) ? { kind: 'version', branch, message: draft.message.trim() } : null
}
