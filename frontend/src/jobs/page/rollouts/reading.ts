/** How the texts of prompts and responses are drawn. */
import { ref } from 'vue'

import { readText, writeChoice } from '@/composables/storedChoice'

export const READINGS = ['chat', 'raw'] as const
export type Reading = (typeof READINGS)[number]

const KEY = 'trellis.rollouts.reading'

/** The same for all of them, and kept for the next visit. */
export const reading = ref<Reading>(readText(KEY) === 'chat' ? 'chat' : 'raw')

export function chooseReading(next: Reading): void {
  reading.value = next
  writeChoice(KEY, next)
}
