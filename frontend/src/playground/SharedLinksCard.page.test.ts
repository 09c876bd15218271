import { NDialogProvider, NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import SharedLinksCard from './SharedLinksCard.vue'

const LINKS = [
  {
    id: 'shc_b',
    title: 'Why is the sky blue?',
    created_at: '2026-01-02T00:00:00Z',
    expires_at: '2026-04-02T00:00:00Z',
  },
  { id: 'shc_a', title: ' ', created_at: '2026-01-01T00:00:00Z', expires_at: '2026-04-01T00:00:00Z' },
]

afterEach(() => {
  vi.restoreAllMocks()
})

/** The card on a platform with these links; null: it answers with an error. */
async function show(found: typeof LINKS | null) {
  let links = found
  const asked: string[] = []
  answering('GET', () =>
    links === null
      ? answer(500, { error: 'internal', message: 'broken', details: null })
      : answer(200, { items: links, next_cursor: null }),
  )
  answering('DELETE', ({ path, parts }) => {
    asked.push(`${path} ${String(parts.shared_id)}`)
    links = links?.filter(({ id }) => id !== parts.shared_id) ?? null
    return answer(204, undefined)
  })
  const deleted: string[] = []
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/playground', name: 'playground', component: { render: () => null } }],
  })
  await router.push('/playground')
  const card = () => h(SharedLinksCard, { version: 0, onDeleted: (id: string) => deleted.push(id) })
  const mounted = mount({ setup: () => () => h(NDialogProvider, () => h(NMessageProvider, card)) }, {}, (app) =>
    app.use(createPinia()).use(router),
  )
  const rows = () => [...mounted.root.querySelectorAll('[data-test=shared-link]')]
  return { ...mounted, rows, asked, deleted }
}

describe('the links of a user', () => {
  it('are listed with what they open, and deleted after a question', async () => {
    const { rows, root, asked, deleted, end } = await show(LINKS)
    await vi.waitFor(() => {
      expect(rows()).toHaveLength(2)
    })

    expect(rows().map((row) => row.querySelector('a')?.textContent)).toEqual(['Why is the sky blue?', 'Untitled'])
    expect(rows()[0]?.querySelector('a')?.getAttribute('href')).toBe('/playground?shared=shc_b')
    expect(rows()[0]?.querySelector('time')?.dateTime).toBe('2026-01-02T00:00:00Z')

    root.querySelector<HTMLElement>('[data-test=delete-shared]')?.click()
    await vi.waitFor(() => {
      expect(document.querySelector('.n-dialog__action')).not.toBeNull()
    })
    expect(document.querySelector('.n-dialog')?.textContent).toContain('Nobody can open “Why is the sky blue?”')
    expect(asked).toEqual([])
    document.querySelector<HTMLElement>('.n-dialog__action button:last-child')?.click()

    await vi.waitFor(() => {
      expect(rows()).toHaveLength(1)
    })
    expect(asked).toEqual(['/api/v1/shared-conversations/{shared_id} shc_b'])
    expect(deleted).toEqual(['shc_b'])
    end()
  })

  it('may be none, and may not be readable', async () => {
    const none = await show([])
    await vi.waitFor(() => {
      expect(none.root.textContent).toContain('No links yet.')
    })
    none.end()

    const broken = await show(null)
    await vi.waitFor(() => {
      expect(broken.root.querySelector('[role=alert]')).not.toBeNull()
    })
    expect(broken.root.textContent).not.toContain('No links yet.')
    broken.end()
  })
})
