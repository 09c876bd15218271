/** Pages of the jobs domain. */
import type { RouteRecordRaw } from 'vue-router'

export const jobRoutes: RouteRecordRaw[] = [
  {
    path: 'jobs',
    name: 'jobs',
    component: () => import('./list/JobsPage.vue'),
    meta: { title: 'jobs.title' },
  },
  {
    path: 'jobs/new',
    name: 'launch',
    component: () => import('./launch/LaunchPage.vue'),
    // A form for each address: one that was filled for another would keep what it asks for.
    props: (route) => ({ key: route.fullPath }),
    meta: { title: 'jobs.launch.title' },
  },
  {
    path: 'jobs/compare',
    name: 'compareJobs',
    component: () => import('./compare/ComparePage.vue'),
    meta: { title: 'jobs.compare.title' },
  },
  {
    path: 'jobs/queue',
    name: 'jobQueue',
    component: () => import('./queue/QueuePage.vue'),
    meta: { title: 'jobs.queue.title' },
  },
  {
    path: 'jobs/:id',
    name: 'job',
    component: () => {
      // The largest part of the page comes beside it, not after it: on a slow line a round trip is 150 ms. The page
      // asks for it again and says so where it does not come.
      import('@/charts/MetricChart.vue').catch(() => undefined)
      return import('./page/JobPage.vue')
    },
    props: true,
    meta: { title: 'jobs.one', hasOwnTexts: true },
  },
]
