/** The run that a reader points at in a drawing: with a mouse, a finger or the arrow keys. */
import { ref } from 'vue'

const NEXT: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }

interface Drawing {
  /** The runs, in the order in which the arrow keys pass them. */
  ids: () => readonly number[]
  marked: () => number | null
  mark: (id: number | null) => void
}

export function useMarkedRun({ ids, marked, mark }: Drawing) {
  /** Whether it is this drawing that is pointed at: a page may mark the same run in several. */
  const isHere = ref(false)

  function point(id: number): void {
    isHere.value = true
    mark(id)
  }

  function leave(): void {
    isHere.value = false
    mark(null)
  }

  /** What the arrow keys chose stays until the focus goes, wherever the mouse is. */
  function onMouseLeave({ currentTarget }: MouseEvent): void {
    if (currentTarget !== document.activeElement) leave()
  }

  /** A click gives focus as well, and has said already which run is meant. */
  function onFocus(event: FocusEvent): void {
    const first = ids()[0]
    if (first === undefined || !(event.target instanceof Element) || !event.target.matches(':focus-visible')) return
    point(marked() ?? first)
  }

  function onKey(event: KeyboardEvent): void {
    const by = NEXT[event.key]
    const all = ids()
    if (by === undefined || all.length === 0) return
    event.preventDefault()
    const at = all.indexOf(marked() ?? NaN)
    const next = at < 0 ? all[0] : all[(at + by + all.length) % all.length]
    if (next !== undefined) point(next)
  }

  return { isHere, point, leave, onMouseLeave, onFocus, onKey }
}
