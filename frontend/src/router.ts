/** All pages; each domain brings its own. */
import { nextTick } from 'vue'
import { createRouter, createWebHistory, type RouteLocation } from 'vue-router'

import { asApiError } from '@/api/errors'
import { onUnauthorized } from '@/api/client'
import { hadSession, useSessionStore } from '@/auth/store'
import { datasetRoutes } from '@/datasets/routes'
import { environmentRoutes } from '@/environments/routes'
import { evaluationRoutes } from '@/evaluations/routes'
import { helpRoutes } from '@/help/routes'
import { loadAllTexts } from '@/i18n'
import { jobPipelineRoutes } from '@/jobPipelines/routes'
import { jobRoutes } from '@/jobs/routes'
import { modelRoutes } from '@/models/routes'
import { pipelineRoutes } from '@/pipelines/routes'
import { playgroundRoutes } from '@/playground/routes'
import { registryRoutes } from '@/registry/routes'
import { reportRoutes } from '@/reports/routes'
import { rewardRoutes } from '@/rewards/routes'
import { sweepRoutes } from '@/sweeps/routes'

declare module 'vue-router' {
  interface RouteMeta {
    /** Locale key of the page's name, for the window title. */
    title?: string
    /** Reachable without a session. */
    isPublic?: boolean
    /** Begins with the texts of `i18n/texts/en.ts` alone; other pages wait for those of all domains. */
    hasOwnTexts?: boolean
  }
}

export const router = createRouter({
  history: createWebHistory(),
  routes: [
    {
      path: '/login',
      name: 'login',
      component: () => import('@/auth/LoginPage.vue'),
      meta: { isPublic: true, title: 'auth.title' },
    },
    {
      path: '/',
      // With the component library, which the login page does without.
      component: () => import('@/layout/DashboardFrame.vue'),
      children: [
        {
          path: '',
          name: 'overview',
          component: () => import('@/overview/OverviewPage.vue'),
          meta: { title: 'overview.title' },
        },
        ...jobRoutes,
        ...jobPipelineRoutes,
        ...sweepRoutes,
        ...environmentRoutes,
        ...datasetRoutes,
        ...pipelineRoutes,
        ...modelRoutes,
        ...registryRoutes,
        ...playgroundRoutes,
        ...rewardRoutes,
        ...evaluationRoutes,
        ...reportRoutes,
        ...helpRoutes,
        {
          path: ':rest(.*)*',
          name: 'not-found',
          component: () => import('@/layout/NotFoundPage.vue'),
          meta: { title: 'layout.notFound.title' },
        },
      ],
    },
  ],
  scrollBehavior(to, from, saved) {
    if (saved !== null) return saved
    if (to.hash !== '') return { el: to.hash }
    return to.path === from.path ? undefined : { top: 0 }
  },
})

/** The texts that a page begins with. */
async function loadTextsOf(to: RouteLocation): Promise<void> {
  if (to.meta.isPublic !== true && to.meta.hasOwnTexts !== true) await loadAllTexts()
}

/** Fetches code and texts of a page while the API says who is logged in. */
function fetchAhead(to: RouteLocation): void {
  loadTextsOf(to).catch(() => undefined)
  for (const load of to.matched.flatMap((record) => Object.values(record.components ?? {}))) {
    // What fails here is asked for again by the router, which reports it.
    if (typeof load === 'function') (load as () => Promise<unknown>)().catch(() => undefined)
  }
}

router.beforeEach(async (to, from) => {
  if (to.meta.isPublic === true) return true
  if (from.matched.length === 0 && hadSession()) fetchAhead(to)
  const session = useSessionStore()
  try {
    await session.ensureAsked()
  } catch (cause) {
    // Anything but a failed request is thrown on. The shell shows that the API is away; once it
    // is back, its first 401 leads to the login page.
    asApiError(cause)
    return true
  }
  if (session.isLoggedIn) return true
  return { name: 'login', query: to.fullPath === '/' ? {} : { next: to.fullPath } }
})

router.beforeResolve(loadTextsOf)

// A new page begins at its heading, for those who hear it and for those who scroll.
router.afterEach((to, from, failure) => {
  if (failure !== undefined || to.path === from.path || from.matched.length === 0) return
  void nextTick(() => {
    const target = document.querySelector<HTMLElement>('main h1') ?? document.querySelector<HTMLElement>('main')
    target?.focus({ preventScroll: true })
  })
})

onUnauthorized(() => {
  useSessionStore().forget()
  const here = router.currentRoute.value
  if (here.name === 'login') return
  void router.push({ name: 'login', query: { next: here.fullPath, why: 'expired' } })
})
