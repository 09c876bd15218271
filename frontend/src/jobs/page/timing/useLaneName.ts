import { useI18n } from 'vue-i18n'

import { splitName } from './lanes'

/** The processes of a run that have a lane of their own. */
const KINDS = ['trainer', 'rank', 'worker', 'engine', 'agent_loop', 'reward']

/** What the process of a lane is called. */
export function useLaneName(): { laneName: (name: string) => string } {
  const { t } = useI18n()
  return {
    laneName(name) {
      const { kind, number } = splitName(name)
      return KINDS.includes(kind) ? t(`jobs.timing.lane.${kind}`, { number }) : name
    },
  }
}
