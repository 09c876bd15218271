/** Why an episode ended, in words; a reason that the dashboard does not know is shown as it is. */
import { useTextOr } from '@/i18n/useTextOr'

export function useStopText() {
  const textOr = useTextOr()

  return {
    stopText: (reason: string) => textOr(`jobs.episodes.stop.${reason}`, reason),
    /** A sentence more; empty where there is none. */
    stopHelp: (reason: string) => textOr(`jobs.episodes.stopHelp.${reason}`, ''),
  }
}
