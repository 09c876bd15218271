import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'

import { ApiError } from './errors'
import { useCursorList } from './useCursorList'
import { useResource } from './useResource'

function run<T>(setup: () => T): { it: T; end: () => void } {
  const scope = effectScope()
  const it = scope.run(setup) as T
  return {
    it,
    end: () => {
      scope.stop()
    },
  }
}

function hide(isHidden: boolean): void {
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(isHidden)
  document.dispatchEvent(new Event('visibilitychange'))
}

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('useResource', () => {
  it('reads at once, then again after each interval, until its scope ends', async () => {
    const load = vi.fn(() => Promise.resolve('answer'))
    const { it: resource, end } = run(() => useResource(load, { intervalMs: 1000 }))

    await vi.advanceTimersByTimeAsync(2500)
    expect(load).toHaveBeenCalledTimes(3)
    expect(resource.data.value).toBe('answer')

    end()
    await vi.advanceTimersByTimeAsync(5000)
    expect(load).toHaveBeenCalledTimes(3)
  })

  it('keeps what a change answered, though a read that began before it ends after it', async () => {
    let answer: (value: string) => void = () => undefined
    const { it: resource, end } = run(() =>
      useResource(
        () =>
          new Promise<string>((resolve) => {
            answer = resolve
          }),
      ),
    )

    resource.set('changed')
    answer('before the change')
    await vi.advanceTimersByTimeAsync(0)

    expect(resource.data.value).toBe('changed')
    expect(resource.isLoading.value).toBe(false)
    end()
  })

  it('rests while the page is hidden, and reads as soon as it is back', async () => {
    const load = vi.fn(() => Promise.resolve(1))
    const { end } = run(() => useResource(load, { intervalMs: 1000 }))
    await vi.advanceTimersByTimeAsync(0)

    hide(true)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(load).toHaveBeenCalledTimes(1)

    hide(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(load).toHaveBeenCalledTimes(2)
    end()
  })

  it('keeps the last good answer when a later read fails, and waits longer each time', async () => {
    const failure = new ApiError({ code: 'internal_error', message: 'no', status: 500 })
    const load = vi.fn<() => Promise<string>>().mockRejectedValue(failure).mockResolvedValueOnce('good')
    const { it: resource, end } = run(() => useResource(load, { intervalMs: 1000 }))

    await vi.advanceTimersByTimeAsync(1000)
    expect(resource.data.value).toBe('good')
    expect(resource.error.value).toBe(failure)
    expect(load).toHaveBeenCalledTimes(2)

    await vi.advanceTimersByTimeAsync(1500)
    expect(load).toHaveBeenCalledTimes(2)
    await vi.advanceTimersByTimeAsync(500)
    expect(load).toHaveBeenCalledTimes(3)
    end()
  })

  it('reads again only as long as what was read asks for it', async () => {
    const load = vi
      .fn<() => Promise<string>>()
      .mockResolvedValue('ready')
      .mockResolvedValueOnce('waiting')
      .mockResolvedValueOnce('waiting')
    const { it: resource, end } = run(() =>
      useResource(load, { intervalMs: (state) => (state === 'waiting' ? 1000 : null) }),
    )

    await vi.advanceTimersByTimeAsync(1000)
    expect(load).toHaveBeenCalledTimes(2)

    await vi.advanceTimersByTimeAsync(10_000)
    expect(load).toHaveBeenCalledTimes(3)
    expect(resource.data.value).toBe('ready')
    end()
  })

  it('drops the answer to a question that is no longer asked', async () => {
    const subject = ref('a')
    const answers = new Map<string, (value: string) => void>()
    const { it: resource, end } = run(() =>
      useResource(() => new Promise<string>((resolve) => answers.set(subject.value, resolve)), { watch: subject }),
    )

    subject.value = 'b'
    await nextTick()
    answers.get('b')?.('about b')
    await vi.advanceTimersByTimeAsync(0)
    answers.get('a')?.('about a')
    await vi.advanceTimersByTimeAsync(0)

    expect(resource.data.value).toBe('about b')
    end()
  })
})

describe('useCursorList', () => {
  const pages: Record<string, { items: { id: string }[]; next_cursor: string | null }> = {
    start: { items: [{ id: '1' }, { id: '2' }], next_cursor: 'two' },
    two: { items: [{ id: '2' }, { id: '3' }], next_cursor: null },
  }

  it('joins pages without showing a row twice', async () => {
    const { it: list, end } = run(() =>
      useCursorList((cursor) => Promise.resolve(pages[cursor ?? 'start'] ?? { items: [] })),
    )
    await vi.advanceTimersByTimeAsync(0)
    expect(list.hasMore.value).toBe(true)

    await list.loadMore()

    expect(list.items.value.map((item) => item.id)).toEqual(['1', '2', '3'])
    expect(list.hasMore.value).toBe(false)
    end()
  })

  it('has the page that was being loaded when a reload came in between', async () => {
    interface Page {
      items: { id: string }[]
      next_cursor?: string
    }
    const asked: { resolve: (page: Page) => void; reject: (cause: Error) => void }[] = []
    const load = vi.fn((cursor: string | undefined) =>
      cursor === undefined
        ? Promise.resolve({ items: [{ id: '1' }], next_cursor: 'two' })
        : new Promise<Page>((resolve, reject) => {
            asked.push({ resolve, reject })
          }),
    )
    const { it: list, end } = run(() => useCursorList(load))
    await vi.advanceTimersByTimeAsync(0)
    const page = list.loadMore()
    const reload = list.reload()
    await vi.advanceTimersByTimeAsync(0)

    asked[0]?.reject(new Error('late'))
    await page
    await list.loadMore()
    expect(list.isLoadingMore.value).toBe(true)
    expect(asked).toHaveLength(2)

    asked[1]?.resolve({ items: [{ id: '2' }] })
    await reload
    expect(list.items.value.map((item) => item.id)).toEqual(['1', '2'])
    expect(list.isLoadingMore.value).toBe(false)
    expect(list.moreError.value).toBe(null)
    end()
  })

  it('keeps the pages that were loaded by hand when it reads anew, without what was deleted', async () => {
    const pages = new Map([
      ['start', { items: [{ id: '1' }], next_cursor: 'two' }],
      ['two', { items: [{ id: '2' }, { id: '3' }], next_cursor: 'three' }],
      ['three', { items: [{ id: '4' }], next_cursor: null }],
    ])
    const { it: list, end } = run(() =>
      useCursorList((cursor) => Promise.resolve(pages.get(cursor ?? 'start') ?? { items: [] })),
    )
    await vi.advanceTimersByTimeAsync(0)
    await list.loadMore()
    pages.set('start', { items: [{ id: '0' }], next_cursor: 'one' })
    pages.set('one', { items: [{ id: '1' }, { id: '3' }], next_cursor: 'three' })

    await list.reload()
    expect(list.items.value.map((item) => item.id)).toEqual(['0', '1', '3'])
    expect(list.hasMore.value).toBe(true)

    await list.restart()
    expect(list.items.value.map((item) => item.id)).toEqual(['0'])
    end()
  })

  it('says so where a further page cannot be read anew, and offers it again', async () => {
    let isAway = false
    const { it: list, end } = run(() =>
      useCursorList((cursor) => {
        if (cursor === undefined) return Promise.resolve({ items: [{ id: '1' }], next_cursor: 'two' })
        return isAway ? Promise.reject(new TypeError('away')) : Promise.resolve({ items: [{ id: '2' }] })
      }),
    )
    await vi.advanceTimersByTimeAsync(0)
    await list.loadMore()
    isAway = true

    await list.reload()

    expect(list.items.value.map((item) => item.id)).toEqual(['1'])
    expect(list.moreError.value?.code).toBe('unreachable')
    expect(list.hasMore.value).toBe(true)
    end()
  })

  it('reads again while what is there asks for it', async () => {
    let isDone = false
    const load = vi.fn(() => Promise.resolve({ items: [{ id: isDone ? 'done' : 'waiting' }] }))
    const { end } = run(() =>
      useCursorList(load, { intervalMs: (items) => (items.some((item) => item.id === 'waiting') ? 1000 : null) }),
    )

    await vi.advanceTimersByTimeAsync(1000)
    isDone = true
    await vi.advanceTimersByTimeAsync(10_000)

    expect(load).toHaveBeenCalledTimes(3)
    end()
  })
})
