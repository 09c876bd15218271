/** The page where models are tried. */
import type { RouteRecordRaw } from 'vue-router'

export const playgroundRoutes: RouteRecordRaw[] = [
  {
    path: 'playground',
    name: 'playground',
    component: () => import('./PlaygroundPage.vue'),
    meta: { title: 'playground.title' },
  },
]
