/** Pages of the documentation. */
import type { RouteRecordRaw } from 'vue-router'

export const helpRoutes: RouteRecordRaw[] = [
  {
    path: 'help/:name?',
    name: 'help',
    component: () => import('./HelpPage.vue'),
    props: true,
    meta: { title: 'layout.docs' },
  },
]
