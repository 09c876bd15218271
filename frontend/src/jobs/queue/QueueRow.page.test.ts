import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import QueueRow from './QueueRow.vue'

const JOB = {
  id: 'job_a',
  name: 'first',
  kind: 'train',
  priority: 0,
  queued_at: '2026-01-01T00:00:00Z',
  resources: { gpus: 1 },
}

function show(start: object | null, more: object = {}) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/jobs/:id', name: 'job', component: { template: '' } }],
  })
  return mount(
    QueueRow,
    {
      item: { job: JOB, start, blocking_endpoints: [] },
      place: 1,
      title: 'SFT',
      canRise: true,
      canFall: true,
      isDragged: false,
      canDrop: true,
      mark: null,
      ...more,
    },
    (app) => app.use(router),
  )
}

describe('a queued job', () => {
  it('says when it starts, or why nobody can tell', () => {
    const texts = [
      { seconds: 0, jobs_ahead: 0, unknown: null },
      { seconds: 90, jobs_ahead: 1, unknown: null },
      { seconds: null, jobs_ahead: 1, unknown: 'long' },
    ].map((start) => {
      const { root, end } = show(start)
      const text = root.querySelector('[data-test=start]')?.textContent
      end()
      return text
    })

    expect(texts[0]).toBe('starting now')
    expect(texts[1]).toMatch(/^starts in about 1 min/)
    expect(texts[2]).toBe('start unknown: no estimate for “long”')
    const { root, end } = show(null)
    expect(root.querySelector('[data-test=start]')).toBeNull()
    end()
  })

  it('says what becomes of the endpoints whose slots it waits for', () => {
    const blocking_endpoints = ['stopping', 'preemptible', 'busy', 'kept', 'off'].map((outlook, index) => ({
      id: outlook,
      name: outlook,
      slots: index - 2,
      outlook,
    }))
    const { root, end } = show(null, { item: { job: JOB, start: null, blocking_endpoints } })

    expect([...root.querySelectorAll('[data-test=blocking] li')].map((line) => line.textContent)).toEqual([
      'waiting for endpoint “stopping” to stop',
      'endpoint “preemptible” is stopped to make room if that is enough',
      'endpoint “busy” is in use; it is stopped once it is idle',
      'endpoint “kept” holds a slot and is kept running',
      'endpoint “off” holds 2 slots until it stops',
    ])
    end()
  })

  it('is moved by its buttons and by Alt with an arrow', () => {
    const heard: string[] = []
    const { root, end } = show(null, { onMove: (way: string) => heard.push(way), canFall: false })

    root.querySelector<HTMLElement>('[data-way=top]')?.click()
    root.querySelector<HTMLElement>('[data-way=up]')?.click()
    root.querySelector<HTMLElement>('[data-way=down]')?.click()
    root
      .querySelector('a')
      ?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', altKey: true, bubbles: true }))
    root.querySelector('a')?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }))

    expect(heard).toEqual(['top', 'up', 'up'])
    end()
  })

  it('is dropped where it was dragged', () => {
    const heard: string[] = []
    const { root, end } = show(null, {
      onDrag: () => heard.push('drag'),
      onOver: () => heard.push('over'),
      onDrop: () => heard.push('drop'),
    })

    for (const name of ['dragstart', 'dragenter', 'drop'])
      root.querySelector('li')?.dispatchEvent(new Event(name, { bubbles: true, cancelable: true }))

    expect(heard).toEqual(['drag', 'over', 'drop'])
    end()
  })

  it('takes only what may be put there, and shows before or behind it', () => {
    const open = show(null, { mark: 'after' })
    const over = new Event('dragover', { bubbles: true, cancelable: true })
    open.root.querySelector('li')?.dispatchEvent(over)
    expect(over.defaultPrevented).toBe(true)
    expect(open.root.querySelector('li.after')).not.toBeNull()
    open.end()

    const closed = show(null, { canDrop: false })
    const refused = new Event('dragover', { bubbles: true, cancelable: true })
    closed.root.querySelector('li')?.dispatchEvent(refused)
    expect(refused.defaultPrevented).toBe(false)
    closed.end()
  })
})
