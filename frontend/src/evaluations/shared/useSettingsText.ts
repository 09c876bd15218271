/** The settings of an evaluation in words: "100 problems · 8-shot". */
import { useI18n } from 'vue-i18n'

import { shortId } from '@/datasets'
import { useTextOr } from '@/i18n/useTextOr'

import { type Configuration, settingsOf } from './settings'

export function useSettingsText(): (configuration: Configuration) => string {
  const { t } = useI18n()
  const textOr = useTextOr()

  return (configuration) => {
    const version =
      configuration.dataset?.version == null
        ? []
        : [t('evaluations.leaderboard.setting.version', { value: shortId(configuration.dataset.version) })]
    const parts = settingsOf(configuration).map(({ name, value }) =>
      t(
        `evaluations.leaderboard.setting.${name}`,
        { value: textOr(`evaluations.leaderboard.value.${value}`, String(value)) },
        typeof value === 'number' ? value : 2,
      ),
    )
    return [...version, ...parts].join(' · ')
  }
}
