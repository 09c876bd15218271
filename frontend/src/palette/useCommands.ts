/** Pages, actions and documents of the command palette. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'
import { type RouteLocationRaw, useRouter } from 'vue-router'

import { useSessionStore } from '@/auth'
import { DOCUMENTS } from '@/help'
import { currentLocale, setLocale } from '@/i18n'
import { type Area, OVERVIEW, type Place, SECTIONS } from '@/layout'
import { THEMES, useThemeStore } from '@/theme/store'
import type { IconName } from '@/ui/icons'
import { useToast } from '@/ui/useToast'

import type { Entry } from './entries'

const THEME_ICONS = { system: 'screen', light: 'sun', dark: 'moon' } as const satisfies Record<string, IconName>

/** Pages that no side bar names. */
const MORE_PAGES: readonly (Place & { icon: IconName })[] = [
  { path: '/evaluations/matrix', title: 'evaluations.nav.matrix', icon: 'evaluations' },
  { path: '/evaluations/benchmarks', title: 'evaluations.nav.benchmarks', icon: 'evaluations' },
]

/** `own` reads the palette's texts, `help` opens the list of shortcuts. */
export function useCommands(own: (key: string) => string, help: () => void) {
  const { t } = useI18n({ useScope: 'global' })
  const router = useRouter()
  const theme = useThemeStore()
  const session = useSessionStore()
  const toast = useToast()

  function goTo(to: RouteLocationRaw): () => void {
    return () => void router.push(to)
  }

  function toPage({ path, title }: Place, icon: IconName, section: string): Entry {
    return { id: `page-${path}`, label: t(title), words: section, icon, run: goTo(path) }
  }

  async function logOut(): Promise<void> {
    try {
      await session.logout()
      await router.push({ name: 'login' })
    } catch (cause) {
      toast.failure(cause)
    }
  }

  const pages = computed<Entry[]>(() => [
    toPage(OVERVIEW, OVERVIEW.icon, ''),
    ...SECTIONS.flatMap(({ name, areas }) =>
      areas.flatMap((area: Area) =>
        [area, ...area.further].map((place) => toPage(place, area.icon, `${t(`layout.nav.${name}`)} ${t(area.title)}`)),
      ),
    ),
    ...MORE_PAGES.map((page) => toPage(page, page.icon, t('evaluations.title'))),
  ])

  const documents = computed<Entry[]>(() =>
    DOCUMENTS.map(({ name, title }) => ({
      id: `docs-${name}`,
      label: title,
      words: `${t('layout.docs')} docs help`,
      icon: 'file',
      run: goTo({ name: 'help', params: { name } }),
    })),
  )

  const actions = computed<Entry[]>(() => [
    { id: 'new-job', label: t('layout.newJob'), icon: 'plus', keys: ['n'], run: goTo('/jobs/new') },
    {
      id: 'new-sweep',
      label: own('action.newSweep'),
      icon: 'plus',
      run: goTo({ name: 'launch', query: { sweep: '1' } }),
    },
    { id: 'new-evaluation', label: own('action.newEvaluation'), icon: 'plus', run: goTo({ name: 'evaluation-new' }) },
    { id: 'upload', label: t('datasets.upload'), icon: 'upload', run: goTo('/datasets?upload=1') },
    { id: 'add-model', label: t('layout.shortcuts.register'), icon: 'plus', run: goTo('/models?add=1') },
    { id: 'new-pipeline', label: own('action.newPipeline'), icon: 'plus', run: goTo({ name: 'pipeline-new' }) },
    { id: 'new-workflow', label: own('action.newWorkflow'), icon: 'plus', run: goTo({ name: 'job-pipeline-new' }) },
    ...THEMES.filter((choice) => choice !== theme.choice).map((choice): Entry => ({
      id: `theme-${choice}`,
      label: own(`action.${choice}`),
      words: t('layout.theme.label'),
      icon: THEME_ICONS[choice],
      run: () => {
        theme.choose(choice)
      },
    })),
    {
      id: 'language',
      label: own('action.language'),
      words: 'language 语言',
      icon: 'language',
      keys: ['l'],
      run: () => {
        setLocale(currentLocale() === 'zh' ? 'en' : 'zh').catch(toast.failure)
      },
    },
    { id: 'help', label: t('layout.shortcuts.help'), words: 'help 帮助', icon: 'keyboard', keys: ['?'], run: help },
    { id: 'logout', label: own('action.logout'), icon: 'logout', run: () => void logOut() },
  ])

  return { pages, actions, documents }
}
