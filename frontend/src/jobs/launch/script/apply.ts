/** Puts what a script of verl's describes into the launch form. */
import type { ImportedScript } from '../../types'
import { type Draft, isParameterValue, type ParameterValue, overrideRow, writeValue } from '../draft'

/** Its settings take the place of those in the form; model and data stay as they were chosen. */
export function applyScript(draft: Draft, found: ImportedScript): void {
  const params = Object.entries(found.params).filter((entry): entry is [string, ParameterValue] =>
    isParameterValue(entry[1]),
  )
  draft.params = Object.fromEntries(params)
  draft.overrides = Object.entries(found.overrides).map(([key, value]) => overrideRow(key, writeValue(value)))
  draft.gpus = found.gpus
  if (draft.name.trim() === '' && found.name !== null) draft.name = found.name
}
