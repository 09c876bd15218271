/** Pages of sweeps. */
import type { RouteRecordRaw } from 'vue-router'

export const sweepRoutes: RouteRecordRaw[] = [
  { path: 'sweeps', name: 'sweeps', component: () => import('./list/SweepsPage.vue'), meta: { title: 'sweeps.title' } },
  {
    path: 'sweeps/:id',
    name: 'sweep',
    component: () => import('./page/SweepPage.vue'),
    props: true,
    meta: { title: 'sweeps.one' },
  },
]
