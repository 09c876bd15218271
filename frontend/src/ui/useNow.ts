/** One clock for all relative times: it ticks while somebody looks at it. */
import { onScopeDispose, readonly, ref } from 'vue'
import type { Ref } from 'vue'

const TICK_MS = 5000

const now = ref(new Date())
let watchers = 0
let timer: ReturnType<typeof setInterval> | undefined

export function useNow(): Readonly<Ref<Date>> {
  if (watchers === 0) {
    now.value = new Date()
    timer = setInterval(() => (now.value = new Date()), TICK_MS)
  }
  watchers += 1
  onScopeDispose(() => {
    watchers -= 1
    if (watchers === 0) clearInterval(timer)
  })
  return readonly(now) as Readonly<Ref<Date>>
}
