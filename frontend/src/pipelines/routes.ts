/** Pages of the pipelines domain. */
import type { RouteRecordRaw } from 'vue-router'

export const pipelineRoutes: RouteRecordRaw[] = [
  {
    path: 'pipelines',
    name: 'pipelines',
    component: () => import('./list/PipelinesPage.vue'),
    meta: { title: 'pipelines.title' },
  },
  {
    path: 'pipelines/new',
    name: 'pipeline-new',
    component: () => import('./editor/EditorPage.vue'),
    meta: { title: 'pipelines.editor.newTitle' },
  },
  { path: 'pipelines/runs', redirect: { name: 'pipelines', query: { tab: 'runs' } } },
  {
    path: 'pipelines/runs/:id',
    name: 'pipeline-run',
    component: () => import('./runs/RunPage.vue'),
    props: true,
    meta: { title: 'pipelines.runs.one' },
  },
  {
    path: 'pipelines/:id',
    name: 'pipeline',
    component: () => import('./editor/EditorPage.vue'),
    props: true,
    meta: { title: 'pipelines.one' },
  },
  {
    path: 'generations/:id',
    name: 'generation',
    component: () => import('./generation/GenerationPage.vue'),
    props: true,
    meta: { title: 'pipelines.generation.one' },
  },
]
