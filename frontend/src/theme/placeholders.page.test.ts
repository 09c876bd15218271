import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { NInput } from 'naive-ui'
import { describe, expect, it } from 'vitest'
import { h } from 'vue'

import { mount } from '@/testing/withSetup'

const PHONE = '(max-width: 720px)'

/** The rules of our style sheet that hold on a phone only. */
function rulesOfPhones(): CSSStyleRule[] {
  const style = document.createElement('style')
  style.textContent = readFileSync(join(process.cwd(), 'src/theme/base.css'), 'utf8')
  document.head.append(style)
  const rules = [...(style.sheet?.cssRules ?? [])].flatMap((rule) =>
    rule instanceof CSSMediaRule && rule.media.mediaText === PHONE ? [...rule.cssRules] : [],
  )
  style.remove()
  return rules.filter((rule) => rule instanceof CSSStyleRule)
}

function spacesOf(type: 'text' | 'textarea'): string[] {
  const { root, end } = mount({ setup: () => () => h(NInput, { type, placeholder: 'Name, ID or tag of the job' }) })
  const placeholder = root.querySelector('.n-input__placeholder')
  const found = rulesOfPhones()
    .filter((rule) => placeholder?.matches(rule.selectorText))
    .map((rule) => rule.style.getPropertyValue('white-space'))
  end()
  return found
}

describe('the placeholder of a field on a phone', () => {
  it('takes a second line instead of being cut off', () => {
    expect(spacesOf('text')).toEqual(['normal'])
  })

  it('is left as it is where the field has several lines', () => {
    expect(spacesOf('textarea')).toEqual([])
  })
})
