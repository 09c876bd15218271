/** Whether the API answers, as seen by the latest request. */
import { readonly, ref } from 'vue'

export type ConnectionState = 'connecting' | 'online' | 'unreachable'

const state = ref<ConnectionState>('connecting')
const since = ref<Date>(new Date())

function move(next: ConnectionState): void {
  if (state.value === next) return
  state.value = next
  since.value = new Date()
}

export const connection = { state: readonly(state), since: readonly(since) }

export function noteAnswer(): void {
  move('online')
}

export function noteSilence(): void {
  move('unreachable')
}
