/** Keyboard shortcuts: pages register theirs while they are open, the help dialog lists what is registered. */
import { onScopeDispose, shallowReactive } from 'vue'

import { MODIFIER_KEY } from '@/ui/keys'

export interface Shortcut {
  /** Keys in order, as `KeyboardEvent.key` names them: `['g', 'j']`, `['?']`. */
  keys: readonly string[]
  /** Locale key of what it does. */
  label: string
  run: () => void
  /** Pressed while ⌘ or Ctrl is held, the first of its keys; works in fields, too. */
  isHeld?: boolean
}

/** How long the second key of a sequence may take. */
const SEQUENCE_TIMEOUT_MS = 1200

export const shortcuts = shallowReactive(new Set<Shortcut>())

/** Registers a shortcut for as long as the calling component lives. */
export function useShortcut(keys: readonly string[], label: string, run: () => void): void {
  register({ keys, label, run })
}

/** Registers a key that works while ⌘ or Ctrl is held. */
export function useHeldShortcut(key: string, label: string, run: () => void): void {
  register({ keys: [MODIFIER_KEY, key], label, run, isHeld: true })
}

function register(shortcut: Shortcut): void {
  shortcuts.add(shortcut)
  onScopeDispose(() => shortcuts.delete(shortcut))
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName)
}

/** Only the key that this keyboard's shortcuts are made with: Ctrl+K ends a line on a Mac. */
function isHeldAlone({ ctrlKey, metaKey, altKey, shiftKey, isComposing }: KeyboardEvent): boolean {
  const [wanted, other] = MODIFIER_KEY === '⌘' ? [metaKey, ctrlKey] : [ctrlKey, metaKey]
  return wanted && !other && !altKey && !shiftKey && !isComposing
}

function startsWith(keys: readonly string[], typed: readonly string[]): boolean {
  return typed.length <= keys.length && typed.every((key, index) => keys[index] === key)
}

/** Listens on the document; returns the function that stops listening. */
export function listenForShortcuts(target: Document = document): () => void {
  let typed: string[] = []
  let lastAt = 0

  function onHeldKey(event: KeyboardEvent): void {
    if (!isHeldAlone(event)) return
    const hit = [...shortcuts].filter((one) => one.isHeld === true && one.keys[1] === event.key.toLowerCase()).at(-1)
    if (hit === undefined) return
    event.preventDefault()
    hit.run()
  }

  function onKey(event: KeyboardEvent): void {
    onHeldKey(event)
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return
    if (event.key === 'Shift') return
    // An open dialog owns the keyboard.
    if (target.querySelector('[role="dialog"][aria-modal="true"]') !== null) return
    typed = event.timeStamp - lastAt > SEQUENCE_TIMEOUT_MS ? [event.key] : [...typed, event.key]
    lastAt = event.timeStamp
    let candidates = [...shortcuts].filter((one) => startsWith(one.keys, typed))
    if (candidates.length === 0) {
      typed = [event.key]
      candidates = [...shortcuts].filter((one) => startsWith(one.keys, typed))
    }
    // The latest registration wins: a page may take over a key of the shell.
    const hit = candidates.filter((one) => one.keys.length === typed.length).at(-1)
    if (hit === undefined) {
      if (candidates.length === 0) typed = []
      return
    }
    typed = []
    event.preventDefault()
    hit.run()
  }

  target.addEventListener('keydown', onKey)
  return () => {
    target.removeEventListener('keydown', onKey)
  }
}
