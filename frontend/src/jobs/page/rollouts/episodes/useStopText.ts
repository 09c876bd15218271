/** Why an episode ended, in words; a reason that the dashboard does not know is shown as it is. */
import { useTextOr } from '@/i18n/useTextOr'

/** A reason and what it is about: `workflow_error:KeyError` names the kind of error. */
const ofReason = (reason: string) => {
  const [name = reason, ...rest] = reason.split(':')
  return { name, detail: rest.join(':') }
}

export function useStopText() {
  const textOr = useTextOr()

  return {
    stopText: (reason: string) => {
      const { name, detail } = ofReason(reason)
      const text = textOr(`jobs.episodes.stop.${name}`, name)
      return detail ? `${text}: ${detail}` : text
    },
    /** A sentence more; empty where there is none. */
    stopHelp: (reason: string) => textOr(`jobs.episodes.stopHelp.${ofReason(reason).name}`, ''),
  }
}
