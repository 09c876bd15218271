import { describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'

import { mount } from '@/testing/withSetup'

import TokenText from './TokenText.vue'
import type { Token } from './types'

function token(text: string, ...others: string[]): Token {
  return { text, logprob: -0.1, top: [text, ...others].map((each, at) => ({ text: each, logprob: -0.1 - at })) }
}

const TOKENS = [token('The', 'A'), token(' sum', ' total', '', '\uFFFD'), token(' ', '\n')]

function show(canContinue = true) {
  const continued: string[][] = []
  const mounted = mount(TokenText, {
    tokens: TOKENS,
    isColoured: true,
    canContinue,
    onContinue: (begun: Token[]) => continued.push(begun.map(({ text }) => text)),
  })
  // happy-dom lays nothing out.
  for (const each of mounted.root.querySelectorAll('.token'))
    each.getClientRects = () => [new DOMRect(0, 0, 8, 8)] as unknown as DOMRectList
  const tokens = [...mounted.root.querySelectorAll<HTMLElement>('.token')]
  const press = (key: string) => {
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
  }
  const find = (name: string) => [...document.querySelectorAll<HTMLElement>(`[data-test=${name}]`)]
  return { ...mounted, tokens, continued, press, find }
}

describe('the tokens of an answer', () => {
  it('are walked through with the arrows from one stop of the Tab key', async () => {
    const { tokens, press, end } = show()
    expect(tokens.map(({ tabIndex }) => tabIndex)).toEqual([0, -1, -1])

    tokens[0]?.focus()
    press('ArrowRight')
    await nextTick()
    expect(document.activeElement).toBe(tokens[1])
    press('End')
    press('ArrowRight')
    await nextTick()

    expect(document.activeElement).toBe(tokens[2])
    expect(tokens.map(({ tabIndex }) => tabIndex)).toEqual([-1, -1, 0])
    // A blank has to be called something.
    expect([tokens[1]?.getAttribute('aria-label'), tokens[2]?.getAttribute('aria-label')]).toEqual([null, '␣'])
    end()
  })

  it('let an answer go on from one of them, or from an alternative that can be written', async () => {
    const { tokens, press, continued, find, end } = show()
    tokens[0]?.focus()
    press('ArrowRight')
    press('Enter')
    await vi.waitFor(() => {
      expect(find('continue-here')).toHaveLength(1)
    })
    expect(find('alternative').map(({ textContent }) => textContent)).toEqual(['␣total'])
    expect(document.querySelector('[role=dialog]')?.getAttribute('aria-label')).toBe('Alternatives to ␣sum')
    find('alternative')[0]?.click()
    await nextTick()
    tokens[1]?.click()
    await vi.waitFor(() => {
      expect(find('continue-here')).toHaveLength(1)
    })
    find('continue-here')[0]?.click()

    expect(continued).toEqual([
      ['The', ' total'],
      ['The', ' sum'],
    ])
    end()
  })

  it('stay open where they were clicked, although the pointer is over them', async () => {
    const { tokens, find, end } = show()
    tokens[1]?.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))
    tokens[1]?.click()
    await new Promise((resolve) => setTimeout(resolve, 200))

    expect(find('continue-here')).toHaveLength(1)
    end()
  })

  it('only show their alternatives where an answer cannot go on', async () => {
    const { tokens, find, end } = show(false)
    tokens[1]?.click()
    await nextTick()

    expect([tokens[1]?.getAttribute('role'), find('alternative').length, find('continue-here').length]).toEqual([
      null,
      0,
      0,
    ])
    end()
  })
})
