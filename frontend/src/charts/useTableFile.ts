/** The values of a chart as a file: all of them, where the chart has its lines thinned out. */
import { saveFile } from '@/composables/saveFile'
import { useAttempt } from '@/ui/useAttempt'

import { type ChartLine, toCsv } from './lines'

interface Table {
  name: string
  lines: readonly ChartLine[]
  readWhole?: () => Promise<readonly ChartLine[]>
  /** Whether the lines lie over milliseconds since 1970, and not over steps. */
  isOfTime?: boolean
}

export function useTableFile(table: () => Table) {
  const { isBusy: isSaving, attempt } = useAttempt()

  function saveTable(): Promise<void> {
    return attempt(async () => {
      const { name, lines, readWhole, isOfTime = false } = table()
      saveFile(`${name}.csv`, toCsv(readWhole === undefined ? lines : await readWhole(), isOfTime), 'text/csv')
    })
  }

  return { isSaving, saveTable }
}
