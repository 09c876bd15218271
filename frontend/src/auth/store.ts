/** Who is logged in, for as long as the tab is open. */
import { defineStore } from 'pinia'
import { computed, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { ApiError } from '@/api/errors'
import type { components } from '@/api/schema'
import { readChoice, writeChoice } from '@/composables/storedChoice'

type User = components['schemas']['UserRead']
const KEY = 'trellis.session'
const SESSION = ['open', 'none'] as const

/** Whether this browser had a session when it last asked: then the code of a page is worth fetching at once. */
export function hadSession(): boolean {
  return readChoice(KEY, SESSION) === 'open'
}

type Credential = { code: string } | { token: string }

export const useSessionStore = defineStore('session', () => {
  const user = shallowRef<User | null>(null)
  watch(user, (one) => {
    writeChoice(KEY, one === null ? 'none' : 'open')
  })
  let asked: Promise<void> | null = null

  async function ask(): Promise<void> {
    try {
      user.value = await unwrap(api.GET('/api/v1/auth/me'))
    } catch (cause) {
      if (!(cause instanceof ApiError) || !cause.isUnauthorized) {
        asked = null
        throw cause
      }
      user.value = null
    }
  }

  /** Asks the API once a tab; throws where the API cannot be reached, and asks again the next time. */
  function ensureAsked(): Promise<void> {
    asked ??= ask()
    return asked
  }

  async function login(credential: Credential): Promise<void> {
    user.value = await unwrap(api.POST('/api/v1/auth/login', { body: credential }))
    asked = Promise.resolve()
  }

  async function logout(): Promise<void> {
    await unwrap(api.POST('/api/v1/auth/logout'))
    user.value = null
  }

  function forget(): void {
    user.value = null
  }

  return { user, isLoggedIn: computed(() => user.value !== null), ensureAsked, login, logout, forget }
})
