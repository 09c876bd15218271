import { afterEach, describe, expect, it } from 'vitest'

import { findField, focusInside } from './focusField'

describe('the way to a field', () => {
  afterEach(() => {
    document.body.innerHTML = ''
  })

  it('leads past the buttons beside its name to what is filled in', () => {
    document.body.innerHTML = '<div data-field="params.lr"><button>vary</button><input id="lr"></div>'
    HTMLElement.prototype.scrollIntoView = () => undefined

    focusInside(findField('params.lr'))

    expect(document.activeElement?.id).toBe('lr')
  })

  it('leads to the whole where a part has no place of its own', () => {
    document.body.innerHTML = '<div id="rewards" data-field="params.rewards"></div>'

    expect(findField('params.rewards.0.weight')?.id).toBe('rewards')
    expect(findField('overrides."odd]')).toBeNull()
  })
})
