/** Asks before something that cannot be taken back. */
import { useDialog } from 'naive-ui'
import { useI18n } from 'vue-i18n'

export interface Question {
  title: string
  text: string
  /** The verb on the button: "Delete", not "OK". */
  action: string
  isDangerous?: boolean
}

export function useConfirm() {
  const dialog = useDialog()
  const { t } = useI18n()

  return function confirm(question: Question): Promise<boolean> {
    return new Promise((resolve) => {
      const isDangerous = question.isDangerous === true
      const open = isDangerous ? dialog.warning : dialog.info
      open({
        title: question.title,
        content: question.text,
        positiveText: question.action,
        negativeText: t('action.cancel'),
        positiveButtonProps: { type: isDangerous ? 'error' : 'primary' },
        autoFocus: false,
        onPositiveClick: () => {
          resolve(true)
        },
        // Every other way of closing the dialog is a no; after a yes this changes nothing.
        onAfterLeave: () => {
          resolve(false)
        },
      })
    })
  }
}
