/** The history of scores for pages that show something else first: its code comes when it is shown. */
import { defineAsyncComponent } from 'vue'

export const LazyHistoryCard = /* @__PURE__ */ defineAsyncComponent(() => import('./HistoryCard.vue'))
