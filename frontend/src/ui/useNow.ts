/** One clock for all relative times: it ticks while somebody looks at it. */
import { createSharedComposable, useNow as useClock } from '@vueuse/core'

const TICK_MS = 5000

export const useNow = /* @__PURE__ */ createSharedComposable(() => useClock({ interval: TICK_MS }))
