/** A row that differs, field by field, as it stands on either side. */
import { cutSame, type FieldMarks, markRows, type Piece } from '@/ui/marking'

import type { DiffRow } from '../types'

export interface SideField {
  name: string
  state: FieldMarks['state']
  /** What the field holds on each side; null where the row or the field is not there. */
  before: Piece[] | null
  after: Piece[] | null
}

export interface Sides {
  fields: SideField[]
  /** Names of the fields that are the same on both sides; empty where only one side is there. */
  same: string[]
}

function without(pieces: readonly Piece[], mark: Piece['mark']): Piece[] {
  return pieces.filter((piece) => piece.mark !== mark)
}

/** Pieces of a value that has nothing to be compared with. */
function plain(row: Readonly<Record<string, unknown>>): FieldMarks[] {
  return markRows(row, null)
}

/** With `isCut`, unchanged stretches of long texts are left out. */
export function sidesOf({ before, after }: DiffRow, isCut: boolean): Sides {
  if (before === null || after === null) {
    const row = before ?? after ?? {}
    const fields = plain(row).map(({ name, pieces }): SideField => ({
      name,
      state: 'same',
      before: before === null ? null : pieces,
      after: after === null ? null : pieces,
    }))
    return { fields, same: [] }
  }
  const marks = markRows(before, after)
  const fields = marks
    .filter((field) => field.state !== 'same')
    .map(({ name, state, pieces }): SideField => {
      const shown = isCut ? cutSame(pieces) : pieces
      return {
        name,
        state,
        before: state === 'new' ? null : without(shown, 'new'),
        after: state === 'gone' ? null : without(shown, 'gone'),
      }
    })
  return { fields, same: marks.filter((field) => field.state === 'same').map((field) => field.name) }
}

/** Characters that a row would show whole. */
export function lengthOf(sides: Sides): number {
  return sides.fields.reduce(
    (sum, field) =>
      sum + [...(field.before ?? []), ...(field.after ?? [])].reduce((all, piece) => all + piece.text.length, 0),
    0,
  )
}
