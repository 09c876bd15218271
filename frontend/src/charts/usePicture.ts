/** Saves a chart as a picture. What composes it is fetched when it is asked for. */
import { saveBlob } from '@/composables/saveFile'
import { useThemeStore } from '@/theme/store'
import { useAttempt } from '@/ui/useAttempt'

import type { Drawing, PictureWords } from './picture'

/** Pixels of a picture for one of the page: it is to be printed, too. */
export const PIXEL_RATIO = 2

export interface Picture extends PictureWords {
  /** Of the file, without its ending. */
  name: string
  /** Null while nothing is drawn. */
  draw: () => Drawing | SVGSVGElement | null
}

export function usePicture(picture: () => Picture) {
  const theme = useThemeStore()
  const { isBusy: isSavingPicture, attempt } = useAttempt()

  function savePicture(): Promise<void> {
    return attempt(async () => {
      const { name, draw, ...words } = picture()
      const { composePicture, drawingOf } = await import('./picture')
      const drawn = draw()
      if (drawn === null) return
      const drawing = 'url' in drawn ? drawn : drawingOf(drawn)
      saveBlob(`${name}.png`, await composePicture(drawing, words, theme.palette))
    })
  }

  return { isSavingPicture, savePicture }
}
