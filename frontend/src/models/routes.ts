/** Pages of the models domain. */
import type { RouteRecordRaw } from 'vue-router'

export const modelRoutes: RouteRecordRaw[] = [
  { path: 'models', name: 'models', component: () => import('./ModelListPage.vue'), meta: { title: 'models.title' } },
  {
    path: 'models/:id',
    name: 'model',
    component: () => import('./ModelPage.vue'),
    props: true,
    meta: { title: 'models.one' },
  },
]
