/** Tests have the texts of both languages from the start, and wait for pages on a busy machine, too. */
import { vi } from 'vitest'

import { LOCALES, loadAllTexts } from '@/i18n'

/** A bound for what never comes; vitest's own is a second. */
const WAIT_MS = 15_000

const { waitFor } = vi
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'object' ? { timeout: WAIT_MS, ...options } : (options ?? WAIT_MS))

await Promise.all(LOCALES.map(loadAllTexts))
