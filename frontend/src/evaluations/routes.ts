/** Pages of the evaluations domain. */
import type { RouteRecordRaw } from 'vue-router'

export const evaluationRoutes: RouteRecordRaw[] = [
  {
    path: 'evaluations',
    name: 'evaluations',
    component: () => import('./list/EvaluationsPage.vue'),
    meta: { title: 'evaluations.title' },
  },
  {
    path: 'evaluations/new',
    name: 'evaluation-new',
    component: () => import('./launch/NewEvaluationPage.vue'),
    // A form for each address: one that was filled for another would keep what it asks for.
    props: (route) => ({ key: route.fullPath }),
    meta: { title: 'evaluations.launch.title' },
  },
  {
    path: 'evaluations/benchmarks',
    name: 'benchmarks',
    component: () => import('./benchmarks/BenchmarksPage.vue'),
    meta: { title: 'evaluations.benchmarks.title' },
  },
  {
    path: 'evaluations/leaderboard',
    name: 'leaderboard',
    component: () => import('./leaderboard/LeaderboardPage.vue'),
    meta: { title: 'evaluations.leaderboard.title' },
  },
  {
    path: 'evaluations/matrix',
    name: 'evaluation-matrix',
    component: () => import('./matrix/MatrixPage.vue'),
    meta: { title: 'evaluations.matrix.title' },
  },
  {
    path: 'evaluations/compare',
    name: 'evaluation-compare',
    component: () => import('./compare/ComparePage.vue'),
    meta: { title: 'evaluations.compare.title' },
  },
  {
    path: 'evaluations/:id',
    name: 'evaluation',
    component: () => import('./page/EvaluationPage.vue'),
    props: true,
    meta: { title: 'evaluations.one' },
  },
]
