/** Answers of the API in tests. */
import { vi } from 'vitest'

import { api } from '@/api/client'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export interface Asked {
  path: string
  /** Parts of the path, `{task_id}` and the like. */
  parts: Readonly<Record<string, string>>
  query: Readonly<Record<string, unknown>>
  body: unknown
}

interface Options {
  params?: { path?: Record<string, string>; query?: Record<string, unknown> }
  body?: unknown
}

export function answer(status: number, body: unknown) {
  const response = new Response(null, { status })
  return status < 400 ? { data: body, response } : { error: body, response }
}

/** Every request of a method is answered by the test; `vi.restoreAllMocks` ends it. */
export function answering(method: Method, reply: (asked: Asked) => unknown): void {
  const handle = (path: string, options: Options = {}) =>
    Promise.resolve(
      reply({ path, parts: options.params?.path ?? {}, query: options.params?.query ?? {}, body: options.body }),
    )
  vi.spyOn(api, method).mockImplementation(handle as never)
}
