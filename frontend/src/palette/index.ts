/** What other domains use of this one. */
import { defineAsyncComponent } from 'vue'

import { withAllTexts } from '@/i18n'

/** Loaded when it is first opened. */
export const CommandPalette = /* @__PURE__ */ defineAsyncComponent(withAllTexts(() => import('./CommandPalette.vue')))
