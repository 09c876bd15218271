/** Pages of pipelines of jobs. */
import type { RouteRecordRaw } from 'vue-router'

export const jobPipelineRoutes: RouteRecordRaw[] = [
  {
    path: 'job-pipelines',
    name: 'job-pipelines',
    component: () => import('./list/JobPipelinesPage.vue'),
    meta: { title: 'jobPipelines.title' },
  },
  {
    path: 'job-pipelines/new',
    name: 'job-pipeline-new',
    component: () => import('./editor/NewPipelinePage.vue'),
    // A form for each address: one that was filled for another would keep what it holds.
    props: (route) => ({ key: route.fullPath }),
    meta: { title: 'jobPipelines.new.title' },
  },
  {
    path: 'job-pipelines/:id',
    name: 'job-pipeline',
    component: () => import('./page/JobPipelinePage.vue'),
    props: true,
    meta: { title: 'jobPipelines.one' },
  },
]
