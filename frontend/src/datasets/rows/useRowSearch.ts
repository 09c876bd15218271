/** Rows that fit: found call by call, each of which looks for about a second. */
import { onScopeDispose, ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { Condition, Row } from '../types'
import { cutRows } from './cuts'

/** Rows a call may find. */
const LIMIT = 50

export interface RowQuery {
  dataset: string
  version: string
  split: string
  conditions: readonly Condition[]
  text: string
}

export interface Hit {
  position: number
  row: Row
  /** Columns that are shown only in part. */
  cut: string[]
}

export function useRowSearch(query: () => RowQuery | null) {
  const hits = shallowRef<Hit[]>([])
  /** Null at the end of the split, and before the first call. */
  const cursor = ref<number | null>(null)
  const lookedAt = ref(0)
  const isBusy = ref(false)
  const error = shallowRef<ApiError | null>(null)
  let running: AbortController | null = null

  async function look(from: number): Promise<void> {
    const asked = query()
    running?.abort()
    if (asked === null) return
    const mine = new AbortController()
    running = mine
    isBusy.value = true
    error.value = null
    try {
      const found = await unwrap(
        api.POST('/api/v1/datasets/{dataset_id}/rows/search', {
          params: { path: { dataset_id: asked.dataset } },
          body: {
            version: asked.version,
            split: asked.split,
            conditions: [...asked.conditions],
            text: asked.text === '' ? null : asked.text,
            cursor: from,
            limit: LIMIT,
          },
          signal: mine.signal,
        }),
      )
      if (mine.signal.aborted) return
      const cut = new Map(cutRows(found.cut).map(({ row, columns }) => [row, columns]))
      hits.value = [
        ...hits.value,
        ...found.rows.map((row, index) => ({ row, position: found.positions[index] ?? 0, cut: cut.get(index) ?? [] })),
      ]
      lookedAt.value += found.looked_at
      cursor.value = found.next_cursor
    } catch (cause) {
      if (mine.signal.aborted || (cause instanceof DOMException && cause.name === 'AbortError')) return
      error.value = asApiError(cause)
    } finally {
      if (running === mine) {
        running = null
        isBusy.value = false
      }
    }
  }

  function reset(): void {
    hits.value = []
    error.value = null
    cursor.value = null
    lookedAt.value = 0
    void look(0)
  }

  async function further(): Promise<void> {
    if (cursor.value !== null && !isBusy.value) await look(cursor.value)
  }

  watch(() => JSON.stringify(query()), reset, { immediate: true })
  onScopeDispose(() => running?.abort())

  return { hits, cursor, lookedAt, isBusy, error, further, again: reset }
}
