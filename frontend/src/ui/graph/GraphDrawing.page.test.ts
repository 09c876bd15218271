import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'

import { mount } from '@/testing/withSetup'

import GraphDrawing from './GraphDrawing.vue'

let shownWidth = 0

class Observer {
  constructor(private readonly report: (entries: { contentRect: { width: number } }[]) => void) {}
  observe(): void {
    this.report([{ contentRect: { width: shownWidth } }])
  }
  disconnect(): void {
    // Nothing was kept.
  }
}

function draw(width: number, links = ['ab', 'bc', 'cd'], ids = ['a', 'b', 'c', 'd']) {
  shownWidth = width
  const nodes = ids.map((id) => ({ id }))
  const edges = links.map(([source, target]) => ({ source: source ?? '', target: target ?? '' }))
  const boxOf = ({ id }: { id: string }) => ({
    name: id,
    under: '',
    to: null,
    tone: 'plain',
    isHere: false,
    isGone: false,
  })
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  return mount(GraphDrawing, { nodes, edges, label: 'graph', boxOf, isDashed: () => false }, (app) => app.use(router))
}

describe('a graph', () => {
  beforeEach(() => {
    vi.stubGlobal('ResizeObserver', Observer)
  })
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  it('that is wider than its place says so at its edge, and fits on demand', async () => {
    const { root, end } = draw(600)
    await nextTick()

    expect(root.querySelector('.frame')?.classList.contains('right')).toBe(true)
    expect(root.querySelector('.frame')?.classList.contains('left')).toBe(false)
    root.querySelector<HTMLElement>('[data-test=fit-graph]')?.click()
    await nextTick()
    expect(root.querySelector('svg')?.classList.contains('fitted')).toBe(true)
    expect(root.querySelector('.frame')?.classList.contains('right')).toBe(false)
    end()
  })

  it('runs down on a phone, where it would be cut across', async () => {
    const { root, end } = draw(342)
    await nextTick()

    expect(Number(root.querySelector('svg')?.getAttribute('width'))).toBeLessThanOrEqual(342)
    expect(root.querySelector('[data-test=fit-graph]')).toBeNull()
    end()
  })

  it('is seen as a whole on a phone, also where it parts', async () => {
    const { root, end } = draw(342, ['ab', 'ac', 'bd', 'cd'])
    await nextTick()

    expect(root.querySelector('svg')?.classList.contains('fitted')).toBe(true)
    expect(root.querySelector('.frame')?.classList.contains('right')).toBe(false)
    root.querySelector<HTMLElement>('[data-test=fit-graph]')?.click()
    await nextTick()
    expect(root.querySelector('svg')?.classList.contains('fitted')).toBe(false)
    end()
  })

  it('leaves it to the style to end long names with their box, and can show the whole name', async () => {
    const name = 'environments/people-of-a-town/rows/main'
    const { root, end } = draw(3000, [], [name])
    await nextTick()

    expect(root.querySelector('foreignObject .name')?.textContent).toBe(name)
    expect(root.querySelector('.node title')?.textContent).toBe(name)
    expect(Number(root.querySelector('foreignObject')?.getAttribute('width'))).toBeLessThan(200)
    end()
  })

  it('that has room offers nothing', async () => {
    const { root, end } = draw(3000)
    await nextTick()

    expect(root.querySelector('[data-test=fit-graph]')).toBeNull()
    end()
  })
})
