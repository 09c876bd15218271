/** Pages of the datasets domain. */
import type { RouteRecordRaw } from 'vue-router'

export const datasetRoutes: RouteRecordRaw[] = [
  {
    path: 'datasets',
    name: 'datasets',
    component: () => import('./DatasetListPage.vue'),
    meta: { title: 'datasets.title' },
  },
  {
    path: 'datasets/:id',
    name: 'dataset',
    component: () => import('./DatasetPage.vue'),
    props: true,
    meta: { title: 'datasets.one' },
  },
]
