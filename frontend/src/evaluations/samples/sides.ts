/** Two answers side by side: each with what only it says marked. */
import { type Piece, markTexts } from '@/ui/marking'

export interface SidePiece {
  text: string
  isOwn: boolean
}

function side(pieces: readonly Piece[], own: Piece['mark']): SidePiece[] {
  return pieces
    .filter((piece) => piece.mark === 'same' || piece.mark === own)
    .map((piece) => ({ text: piece.text, isOwn: piece.mark === own }))
}

export function markSides(a: string, b: string): { a: SidePiece[]; b: SidePiece[] } {
  const pieces = markTexts(a, b)
  return { a: side(pieces, 'gone'), b: side(pieces, 'new') }
}
