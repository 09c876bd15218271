/** Pages of the environments domain. */
import type { RouteRecordRaw } from 'vue-router'

export const environmentRoutes: RouteRecordRaw[] = [
  {
    path: 'environments',
    name: 'environments',
    component: () => import('./list/EnvironmentsPage.vue'),
    meta: { title: 'environments.title' },
  },
  {
    path: 'environments/:id',
    name: 'environment',
    component: () => import('./page/EnvironmentPage.vue'),
    props: true,
    meta: { title: 'environments.one' },
  },
  {
    path: 'workflows',
    name: 'workflows',
    component: () => import('./workflows/WorkflowsPage.vue'),
    meta: { title: 'environments.workflows.title' },
  },
]
