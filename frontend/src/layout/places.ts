/** Pages that the side bar and the command palette lead to, by what a person is doing. */
import type { IconName } from '@/ui/icons'

export interface Place {
  path: string
  /** Locale key, among the texts of the layout where the page's own are loaded with the page. */
  title: string
}

/** A page with an icon; those below it lie in the same area. */
export interface Area extends Place {
  icon: IconName
  /** Locale key of a shorter title for narrow screens. */
  short?: string
  further: readonly Place[]
}

export const OVERVIEW: Area = { path: '/', title: 'overview.title', icon: 'overview', further: [] }

export const SECTIONS = [
  {
    name: 'build',
    areas: [
      { path: '/datasets', title: 'layout.place.datasets', icon: 'datasets', further: [] },
      {
        path: '/pipelines',
        title: 'layout.place.dataPipelines',
        short: 'layout.nav.pipelines',
        icon: 'pipelines',
        further: [],
      },
      {
        path: '/environments',
        title: 'layout.place.environments',
        short: 'layout.place.environmentsShort',
        icon: 'environments',
        further: [{ path: '/workflows', title: 'layout.place.agentCode' }],
      },
      { path: '/rewards', title: 'layout.place.rewards', icon: 'rewards', further: [] },
    ],
  },
  {
    name: 'train',
    areas: [
      {
        path: '/jobs',
        title: 'jobs.title',
        icon: 'jobs',
        further: [
          { path: '/jobs/queue', title: 'jobs.queue.title' },
          { path: '/sweeps', title: 'sweeps.title' },
          { path: '/job-pipelines', title: 'layout.place.workflows' },
        ],
      },
    ],
  },
  {
    name: 'ship',
    areas: [
      {
        path: '/evaluations',
        title: 'evaluations.title',
        short: 'layout.nav.evaluations',
        icon: 'evaluations',
        further: [
          { path: '/evaluations/leaderboard', title: 'evaluations.nav.leaderboard' },
          { path: '/reports', title: 'layout.place.reports' },
        ],
      },
      {
        path: '/models',
        title: 'layout.place.models',
        icon: 'models',
        further: [
          { path: '/registry', title: 'layout.place.registry' },
          { path: '/playground', title: 'layout.place.playground' },
        ],
      },
    ],
  },
] as const satisfies readonly { name: string; areas: readonly Area[] }[]

const PLACES: readonly Place[] = SECTIONS.flatMap(({ areas }) => areas.flatMap((area: Area) => [area, ...area.further]))

/** The path of the place that an address belongs to: the one that is furthest down. */
export function findPlace(address: string): string | null {
  if (address === '/') return '/'
  const above = PLACES.map(({ path }) => path).filter((path) => address === path || address.startsWith(`${path}/`))
  return above.sort((a, b) => b.length - a.length)[0] ?? null
}
