import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { effectScope } from 'vue'
import type { EffectScope } from 'vue'

import { listenForShortcuts, useHeldShortcut, useShortcut } from './shortcuts'

let scope: EffectScope
let stop: () => void

function press(key: string, target: EventTarget = document.body, more: KeyboardEventInit = {}): void {
  target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }))
}

function register(keys: readonly string[]) {
  const action = vi.fn()
  scope.run(() => {
    useShortcut(keys, 'layout.shortcuts.help', action)
  })
  return action
}

beforeEach(() => {
  scope = effectScope()
  stop = listenForShortcuts()
})

afterEach(() => {
  stop()
  scope.stop()
  document.body.replaceChildren()
})

describe('shortcuts', () => {
  it('run on a key, and on two keys in order', () => {
    const help = register(['?'])
    const jobs = register(['g', 'j'])

    press('?')
    press('g')
    press('j')

    expect(help).toHaveBeenCalledTimes(1)
    expect(jobs).toHaveBeenCalledTimes(1)
  })

  it('begin anew after a key that leads nowhere', () => {
    const jobs = register(['g', 'j'])

    press('g')
    press('x')
    press('j')
    expect(jobs).not.toHaveBeenCalled()

    press('g')
    press('j')
    expect(jobs).toHaveBeenCalledTimes(1)
  })

  it('stay silent while somebody types, holds Ctrl, or a dialog is open', () => {
    const theme = register(['t'])
    const field = document.createElement('input')
    document.body.append(field)

    press('t', field)
    press('t', document.body, { ctrlKey: true })
    document.body.insertAdjacentHTML('beforeend', '<div role="dialog" aria-modal="true"></div>')
    press('t')

    expect(theme).not.toHaveBeenCalled()
  })

  it('let a page take over a key, and give it back', () => {
    const shell = register(['n'])
    const page = effectScope()
    const own = vi.fn()
    page.run(() => {
      useShortcut(['n'], 'layout.shortcuts.help', own)
    })

    press('n')
    page.stop()
    press('n')

    expect(own).toHaveBeenCalledTimes(1)
    expect(shell).toHaveBeenCalledTimes(1)
  })
})

describe('shortcuts with a held key', () => {
  it('work in fields and over dialogs, with that key alone', () => {
    const find = vi.fn()
    scope.run(() => {
      useHeldShortcut('k', 'layout.shortcuts.help', find)
    })
    const field = document.createElement('input')
    document.body.append(field)

    press('k')
    press('k', field, { ctrlKey: true, shiftKey: true })
    press('k', field, { metaKey: true })
    press('j', field, { ctrlKey: true })
    expect(find).not.toHaveBeenCalled()

    press('k', field, { ctrlKey: true })
    document.body.insertAdjacentHTML('beforeend', '<div role="dialog" aria-modal="true"></div>')
    press('K', document.body, { ctrlKey: true })
    expect(find).toHaveBeenCalledTimes(2)
  })
})
