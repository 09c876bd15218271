/** Pages of the reports domain. */
import type { RouteRecordRaw } from 'vue-router'

export const reportRoutes: RouteRecordRaw[] = [
  {
    path: 'reports',
    name: 'reports',
    component: () => import('./list/ReportsPage.vue'),
    meta: { title: 'reports.title' },
  },
  {
    path: 'reports/:id',
    name: 'report',
    component: () => import('./page/ReportPage.vue'),
    props: true,
    meta: { title: 'reports.one' },
  },
]
