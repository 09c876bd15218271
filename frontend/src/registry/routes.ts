/** Pages of the registry of models. */
import type { RouteRecordRaw } from 'vue-router'

export const registryRoutes: RouteRecordRaw[] = [
  {
    path: 'registry',
    name: 'registry',
    component: () => import('./RegistryListPage.vue'),
    meta: { title: 'registry.title' },
  },
  {
    path: 'registry/:name',
    name: 'named-model',
    component: () => import('./NamedModelPage.vue'),
    props: true,
    meta: { title: 'registry.one' },
  },
]
