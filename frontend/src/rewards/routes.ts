/** Pages of the rewards domain. */
import type { RouteRecordRaw } from 'vue-router'

export const rewardRoutes: RouteRecordRaw[] = [
  { path: 'rewards', name: 'rewards', component: () => import('./RewardsPage.vue'), meta: { title: 'rewards.title' } },
]
