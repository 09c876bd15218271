import { NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { defineComponent, h, nextTick, ref } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import type { ParameterRow } from './axes'
import ParallelCoordinates from './ParallelCoordinates.vue'
import ParameterScatter from './ParameterScatter.vue'

const ROWS: ParameterRow[] = [
  { id: 1, label: 'slow', values: { learning_rate: 1e-6, beta: 0.1 }, value: 0.25 },
  { id: 2, label: 'fast', values: { learning_rate: 2e-6, beta: 0.1 }, value: 0.5 },
]

/** Both drawings of a page, which mark the same run. */
function page() {
  const marked = ref<number | null>(null)
  const shared = { rows: ROWS, metric: 'accuracy', mode: 'max', best: 2, preferred: 'learning_rate' }
  const both = defineComponent(() => () => [
    h('div', { id: 'parallel' }, h(ParallelCoordinates, { ...shared, mode: 'max', marked: marked.value, onMark })),
    h('div', { id: 'scatter' }, h(ParameterScatter, { ...shared, marked: marked.value, onMark })),
  ])
  function onMark(id: number | null): void {
    marked.value = id
  }
  const mounted = mount({ setup: () => () => h(NMessageProvider, () => h(both)) }, {}, (app) => app.use(createPinia()))
  const one = <T extends Element>(selector: string) => mounted.root.querySelector<T>(selector)
  const said = (drawing: string) => one(`#${drawing} [data-test=marked-run]`)?.textContent?.replace(/\s+/g, ' ').trim()
  return { ...mounted, one, said, marked }
}

describe('the run that is pointed at', () => {
  beforeEach(() => {
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
  })
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  it('is printed with its values under the drawing in which it is, and nowhere else', async () => {
    const { one, said, end } = page()
    one('#scatter circle[data-run="2"]')?.dispatchEvent(new MouseEvent('mouseenter'))
    await nextTick()
    expect(said('scatter')).toContain('fast')
    expect(said('scatter')).toContain('0.5')
    expect(said('parallel')).toBe('')

    one('#scatter svg[role=application]')?.dispatchEvent(new MouseEvent('mouseleave'))
    one('#parallel path.near')?.dispatchEvent(new MouseEvent('mouseenter'))
    await nextTick()
    expect(said('parallel')).toContain('slow')
    expect(said('parallel')).toContain('beta 0.1')
    expect(said('scatter')).toBe('')
    end()
  })

  it('is chosen with the arrow keys, too', async () => {
    const { one, said, marked, end } = page()
    const svg = one<SVGSVGElement>('#scatter svg[role=application]')
    const press = (key: string) => svg?.dispatchEvent(new KeyboardEvent('keydown', { key }))
    press('ArrowRight')
    await nextTick()
    expect(said('scatter')).toContain('slow')
    press('ArrowRight')
    await nextTick()
    expect(said('scatter')).toContain('fast')
    svg?.focus()
    svg?.dispatchEvent(new MouseEvent('mouseleave'))
    await nextTick()
    expect(said('scatter')).toContain('fast')
    press('ArrowRight')
    await nextTick()
    expect(marked.value).toBe(1)
    svg?.blur()
    await nextTick()
    expect(marked.value).toBeNull()
    end()
  })
})
